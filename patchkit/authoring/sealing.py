"""A changed series written: its files and its lock, all of them or none.

Before the first byte the new series is applied again from its own bytes, whole and for every
stack, and has to give what was built. The files change in one transaction whose journal stands in
the project's `.patchkit/`; the next command takes back what a killed one left.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from patchkit.authoring.builder import Builder
from patchkit.authoring.form import Row
from patchkit.authoring.standing import Standing
from patchkit.derive.base import Base
from patchkit.derive.builds import native_without_guard
from patchkit.derive.carry import same
from patchkit.derive.derive import derive
from patchkit.derive.project import JOURNAL, Project
from patchkit.derive.proofs import locked_proofs
from patchkit.derive.relock import make_lock
from patchkit.derive.selection import Selection
from patchkit.engine.model import REGULAR, File
from patchkit.errors import Finding, Refused, Where
from patchkit.files.growing import remove_empty_folder
from patchkit.files.lock import folder_locked
from patchkit.files.root import OWN, Root
from patchkit.files.transaction import Recovered, change, recover
from patchkit.series.folder import Series
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockfile import Lock
from patchkit.series.lockjson import dumps
from patchkit.series.pins import Pin
from patchkit.series.quilt import NAME as SERIES
from patchkit.series.quilt import Entry, SeriesFile, dump_series, parse_series
from patchkit.series.quilt_edit import change as change_entry
from patchkit.series.quilt_edit import insert, move, remove
from patchkit.store.repo import Store

Files = Mapping[str, File | None]
"""Paths below the project's folder: what each becomes, None where it goes."""


@dataclass(frozen=True)
class Ready:
    """A series that can be written. files: what differs from the disk, by path in the project.

    rows: what became of each patch. findings: notes. tree: id of the whole patched tree.
    """

    pin: str
    series: Series
    lock: Lock
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    files: Files = field(default_factory=dict)

    @property
    def tree(self) -> str:
        """Id of the tree with every patch."""
        return next(iter(self.lock.series.trees.values()))[-1]


@contextmanager
def writing(project: Project) -> Iterator[Recovered | None]:
    """Hold the project for one writer; what a killed one left is taken back first.

    Raises EnvironmentFault(disk) where another writer does not end, Refused(journal).
    """
    with folder_locked(project.folder):
        yield recover(Root(project.folder), os.path.join(project.folder, JOURNAL))


def seal(
    builder: Builder,
    *,
    gone: Mapping[str, str] | None = None,
    proofs: Files | None = None,
    file: SeriesFile | None = None,
    adopted: Sequence[str] = (),
) -> Ready:
    """The new series with its lock.

    gone: patches that are left out on purpose, with the state that the table gives them. proofs:
    files below the series folder that come or go with a patch. file: a series file to begin with
    (its comments), else the old one. adopted: new patches whose file in the folder may be
    replaced. Raises Refused with every finding of the builder, or of applying the result.
    """
    standing = builder.standing
    if not builder.ok:
        raise Refused(*sorted(builder.findings, key=lambda f: f.note))
    start = standing.series.file if file is None else file
    listed = arranged(start, [built.entry for built in builder.built])
    series = Series(
        standing.pin.name,
        listed,
        tuple(listed.entries),
        tuple(built.patch for built in builder.built),
        tuple(built.header for built in builder.built),
    )
    _require_free(standing, series, adopted)
    _prove(builder, series)
    rows = (*builder.rows, *(Row(name, state) for name, state in (gone or {}).items()))
    return sealed(
        standing.project,
        standing.pin,
        standing.store,
        standing.base,
        series,
        rows=rows,
        notes=tuple(builder.findings),
        proofs=proofs,
        gone=tuple(n for n in standing.names if n not in listed.names()),
    )


def sealed(
    project: Project,
    pin: Pin,
    store: Store,
    base: Base,
    series: Series,
    *,
    rows: Sequence[Row] = (),
    notes: Sequence[Finding] = (),
    proofs: Files | None = None,
    gone: Sequence[str] = (),
) -> Ready:
    """A series in memory, with its lock and with the files that differ from the disk.

    Raises Refused where it does not apply, whole or in some stack, or where a patch without a
    guard needs a compiler.
    """
    native = [
        replace(f, next="patchkit refresh --guard NAME (new and import take --guard, too)")
        for f in native_without_guard(project.pins.upstream_of(pin), series)
    ]
    if native:
        raise Refused(*native)
    folder = os.path.relpath(project.series_folder(pin.name), project.folder)
    found = _proofs(project, pin, series, proofs or {})
    made = make_lock(project, pin, series, store, {base.source: base}, found)
    if made.lock is None:
        raise Refused(*(f for f in made.findings if not f.note))
    files: dict[str, File | None] = {
        f"{folder}/{SERIES}": File(dump_series(series.file)),
        f"{folder}/{LOCK}": File(dumps(made.lock)),
    }
    for entry, patch in zip(series.entries, series.patches, strict=True):
        files[f"{folder}/{entry.patch}"] = File(patch.data)
    files.update({f"{folder}/{name}": None for name in gone})
    files.update({f"{folder}/{path}": file for path, file in (proofs or {}).items()})
    root = Root(project.folder)
    differing = {path: file for path, file in files.items() if _differs(root.get(path), file)}
    findings = (*notes, *(f for f in made.findings if f not in notes))
    return Ready(pin.name, series, made.lock, tuple(rows), findings, differing)


def write_files(project: Project, files: Files, what: str) -> list[str]:
    """Write files of the project, all or nothing; it must be held (`writing`). Gives the paths.

    what: words for the message after a crash.
    """
    if not files:
        return []
    try:
        change(Root(project.folder), files, os.path.join(project.folder, JOURNAL), what=what)
    finally:
        remove_empty_folder(os.path.join(project.folder, OWN))
    return sorted(files)


def arranged(file: SeriesFile, entries: Sequence[Entry]) -> SeriesFile:
    """The series file with exactly these entries, in this order; comments stay."""
    wanted = [entry.patch for entry in entries]
    for name in file.names():
        if name not in wanted:
            file = remove(file, name)
    before: str | None = None
    for place, entry in enumerate(entries):
        names = file.names()
        if entry.patch not in names:
            file = insert(file, entry, after=before, first=before is None)
        elif names[place] != entry.patch:
            file = move(file, entry.patch, after=before, first=before is None)
        now = file.find(entry.patch)
        if (now.strip, now.reverse, now.guard) != (entry.strip, entry.reverse, entry.guard):
            file = change_entry(
                file, entry.patch, strip=entry.strip, reverse=entry.reverse, guard=entry.guard
            )
        before = entry.patch
    return parse_series(dump_series(file))


def _require_free(standing: Standing, series: Series, adopted: Sequence[str]) -> None:
    """No new patch takes the place of a file that is nobody's."""
    folder = standing.project.series_folder(standing.pin.name)
    taken = [
        name
        for name in series.file.names()
        if name not in standing.names and name not in adopted and os.path.lexists(folder / name)
    ]
    if taken:
        raise Refused(
            *(
                Finding(
                    "target-exists",
                    f"{name} is in the series folder already, and no line of the series names it",
                    Where(patch=name),
                    expected="no file of that name",
                    next=f"remove it, or take it in: patchkit import {folder / name}",
                )
                for name in taken
            )
        )


def _prove(builder: Builder, series: Series) -> None:
    """The series' own bytes give what was built: every patch, every path."""
    again = derive(series, builder.standing.tree, Selection())
    if not again.ok:
        raise Refused(*(f for f in again.findings if not f.note))
    for built, outcome in zip(builder.built, again.outcomes, strict=True):
        for path in sorted({*outcome.changes, *built.changes}):
            one, two = outcome.changes.get(path), built.changes.get(path)
            if path in outcome.changes and path in built.changes and same(one, two):
                continue
            raise Refused(
                Finding(
                    "verify-failed",
                    "the patch as written does not make what it was made from",
                    Where(patch=built.entry.patch, file=path),
                    expected=two.oid if two else "no file",
                    found=one.oid if one else "no file",
                    next="report it: this is a fault of patchkit; nothing was written",
                )
            )


def _proofs(project: Project, pin: Pin, series: Series, changes: Files) -> dict[str, str]:
    """Digests of the proofs as they will be."""
    found = locked_proofs(project, pin.name, series)
    for path, file in changes.items():
        if file is None:
            found.pop(path, None)
        else:
            found[path] = hashlib.sha256(file.data).hexdigest()
            # A proof of its own: it is not inherited any more.
            for inherited in [p for p in found if p.endswith(f"/{path}")]:
                del found[inherited]
    return found


def _differs(found: File | None, wanted: File | None) -> bool:
    if found is None or wanted is None:
        return found is not wanted
    # The mode of a file in series/ is the user's; only a link must not stand there.
    return found.data != wanted.data or found.mode not in (REGULAR, 0o100755)
