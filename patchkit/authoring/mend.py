"""`lint`: what is wrong, risky or noise in patch files; `--fix` mends what changes no effect."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from patchkit.authoring.form import Row
from patchkit.authoring.sealing import Ready, sealed
from patchkit.authoring.session import Session
from patchkit.authoring.standing import effects
from patchkit.authoring.workplace import near
from patchkit.derive.project import Project
from patchkit.engine.parse import parse
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.series.folder import PATCH_LIMIT, Series, read_series
from patchkit.series.header import parse_header
from patchkit.series.lint import Lint, fix_patch, lint_patch, lint_series
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin

MENDED = "mended"


@dataclass(frozen=True)
class Linted:
    """What lint says of one series, or of loose files. pin: "" for files."""

    pin: str
    patches: int
    lints: tuple[Lint, ...]


def lint_pin(project: Project, pin: str, only: Collection[str] | None = None) -> Linted:
    """Everything to say about the patches of a pin. only: some of them.

    Raises Refused where the series file cannot be read.
    """
    folder = project.series_folder(pin)
    series = read_series(folder, strict=False)
    lints = [_typed(lint, project, pin) for lint in lint_series(series)]
    if only is not None:
        lints = [lint for lint in lints if lint.where.patch in only]
    return Linted(pin, len(series.file.entries) if only is None else len(only), tuple(lints))


def _typed(lint: Lint, project: Project, pin: str) -> Lint:
    """The finding with the file's path, and a hint that can be typed where the person is."""
    name = lint.where.patch or "series"
    path = near(os.path.join(project.series_folder(pin), name))
    several = sum(project.has_series(other) for other in project.pins.pins) > 1
    refresh = f"patchkit refresh {show_path(name)}" + (f" --pin {pin}" if several else "")
    return lint.typed(path, refresh)


def lint_files(files: Sequence[tuple[str, bytes]]) -> Linted:
    """Everything to say about loose files (name, bytes)."""
    lints = [lint.typed(name) for name, data in files for lint in lint_patch(data, name)]
    return Linted("", len(files), tuple(lints))


def mend(run: Session, pin: Pin, only: Collection[str] | None = None) -> Ready:
    """The series of `pin` with everything mended that cannot change an effect, and its lock.

    Raises Refused where the series cannot be read or applied after that: then nothing is mended.
    """
    was: dict[str, bytes] = {}

    def fixed(name: str, data: bytes) -> bytes:
        was[name] = data
        return fix_patch(data, name) if only is None or name in only else data

    series = read_changed(run.project, pin.name, fixed)
    rows = [Row(p.name, "unchanged" if p.data == was[p.name] else MENDED) for p in series.patches]
    base = run.bases.get(pin, run.source)
    ready = sealed(run.project, pin, run.bases.store, base, series, rows=rows)
    at = run.project.series_folder(pin.name) / LOCK
    if at.is_file():
        mended = {row.patch for row in rows if row.state == MENDED}
        _require_locked(run.project.lock(pin.name), ready.lock, mended)
    return ready


def read_changed(project: Project, pin: str, edit: Callable[[str, bytes], bytes]) -> Series:
    """The series of a pin with every patch's bytes as `edit` (name, bytes) gives them.

    Raises Refused with every reason why a patch cannot be read even so.
    """
    folder = project.series_folder(pin)
    before = read_series(folder, strict=False)
    root = Root(folder)
    wrong = [f for f in before.refused if f.name in ("missing-patch", "symlink-in-path")]
    patches, headers = [], []
    for entry in before.file.entries:
        file = root.get(entry.patch, PATCH_LIMIT)
        if file is None:
            continue
        try:
            patch = parse(edit(entry.patch, file.data), entry.patch)
        except Refused as refusal:
            wrong.extend(refusal.findings)
            continue
        patches.append(patch)
        headers.append(parse_header(patch.header))
    if wrong:
        raise Refused(*(_by_hand(finding) for finding in wrong))
    return Series(pin, before.file, tuple(before.file.entries), tuple(patches), tuple(headers))


def _require_locked(old: Lock, new: Lock, mended: Collection[str]) -> None:
    """No patch was edited so that it does anything else than was locked. mended: of these one that
    the lock does not know yet comes in."""
    relock = f"see what changed, and, if it is meant: patchkit lock --pin {new.pin.name}"
    before, after = effects(old), effects(new)
    edited = [
        name
        for name, digest in new.patches
        if (name in before or name not in mended)
        and old.digest_of(name) != digest
        and before.get(name, {}) != after.get(name, {})
    ]
    if edited:
        raise Refused(
            *(
                Finding(
                    "patch-edited",
                    f"{name} does something else than was locked",
                    Where(patch=name),
                    expected="the effect that is locked",
                    found="another",
                    next=relock,
                )
                for name in edited
            )
        )


def _by_hand(finding: Finding) -> Finding:
    where = finding.where.patch or finding.where.file or ""
    said = finding.next or f"mend {where} by hand, then patchkit lint --fix again"
    return replace(finding, next=said)


def members(project: Project, pin: str, names: Sequence[str]) -> list[str] | None:
    """The patches of a pin that NAMEs or paths mean; None where one of them is no patch of it."""
    if not project.has_series(pin):
        return None
    folder = project.series_folder(pin)
    known = read_series(folder, strict=False).file.names()
    out = []
    for name in names:
        inside = os.path.relpath(os.path.realpath(name), os.path.realpath(folder))
        found = next((n for n in (name, f"{name}.patch", inside) if n in known), None)
        if found is None:
            return None
        out.append(found)
    return out


def missing(name: str) -> Finding:
    """That a word is neither a patch nor a file."""
    return Finding(
        "missing-patch",
        f"{name} is neither a patch of the series nor a file",
        Where(patch=name),
        expected="a patch's name, or the path of a file",
        next="patchkit list",
    )
