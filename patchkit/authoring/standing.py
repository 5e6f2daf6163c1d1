"""A pin's series as it stands: read, applied in memory, and compared with its lock."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchkit.derive.base import Base, Bases
from patchkit.derive.derive import Derived, derive, trees_of
from patchkit.derive.project import Project
from patchkit.derive.relock import blob_of, locked_pin
from patchkit.derive.selection import Selection
from patchkit.engine.model import File, Tree
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.folder import Series
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockfile import Blob, Lock, LockedPin
from patchkit.series.naming import named
from patchkit.series.pins import FILE as PINS
from patchkit.series.pins import Pin
from patchkit.series.quilt import SeriesFile, entries_digest
from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree


class Versions:
    """Every version of every path that a series touches."""

    def __init__(self, base: Tree, steps: Sequence[Mapping[str, File | None]]) -> None:
        self._base = base
        self._steps: dict[str, list[tuple[int, File | None]]] = {}
        for number, changes in enumerate(steps, 1):
            for path, file in changes.items():
                self._steps.setdefault(path, []).append((number, file))

    def get(self, path: str, count: int) -> File | None:
        """The file at `path` after the first `count` patches."""
        steps = self._steps.get(path, [])
        at = bisect_left(steps, count + 1, key=lambda step: step[0])
        return steps[at - 1][1] if at else self._base.get(path)

    def after(self, count: int) -> At:
        """The tree after the first `count` patches."""
        return At(self, count)


@dataclass(frozen=True)
class At:
    """The tree after some patches, as far as `derive.carry` asks it."""

    versions: Versions
    count: int

    def get(self, path: str) -> File | None:
        """The file at `path`."""
        return self.versions.get(path, self.count)


@dataclass(frozen=True)
class Standing:
    """A series with what it gives. derived: may have failed patches; see `whole`.

    lock: None where there is none. tree: the base.
    """

    project: Project
    pin: Pin
    store: Store
    base: Base
    tree: StoreTree
    series: Series
    derived: Derived
    lock: Lock | None

    @cached_property
    def names(self) -> list[str]:
        """The patches in order."""
        return [entry.patch for entry in self.series.entries]

    @cached_property
    def versions(self) -> Versions:
        """Every version of the touched paths; a patch that failed changes nothing."""
        return Versions(self.tree, self.derived.changes())

    @cached_property
    def trees(self) -> tuple[str, ...]:
        """Tree ids: the base, and after each patch; the trees are in the store then."""
        return trees_of(self.store, self.derived, self.base.tree_id)

    def changes(self, index: int) -> Mapping[str, File | None]:
        """What the patch at `index` (0-based) changes."""
        return self.derived.outcomes[index].changes

    def index(self, name: str) -> int:
        """Place of a patch, with or without .patch. Raises UsageFault(missing-patch)."""
        return self.names.index(named(self.names, name))

    def whole(self) -> Standing:
        """The same; raises Refused with every reason why some patch does not hold."""
        if not self.derived.ok:
            raise Refused(*(f for f in self.derived.findings if not f.note))
        return self


def target_pin(project: Project, name: str | None) -> Pin:
    """The pin that a verb means: named, the only one with a series, or the only one.

    Raises Refused, UsageFault.
    """
    pins = project.pins.pins
    if name is None and len(pins) == 1:
        return next(iter(pins.values()))
    if name is None and not pins:
        raise UsageFault.because("pins.toml has no pin", next="patchkit pin RELEASE --add")
    return project.one_pin(name)


def open_standing(
    project: Project,
    pin: Pin,
    bases: Bases,
    *,
    source: str | None = None,
    series: Series | None = None,
) -> Standing:
    """Read the series of `pin` (an empty one where there is none) and apply it in memory.

    series: one that was read in another way. Raises Refused where a file of the series cannot be
    read, EnvironmentFault where the base cannot be had.
    """
    if series is None and project.has_series(pin.name):
        series = project.series(pin.name)
    if series is None:
        series = Series(pin.name, SeriesFile(), (), (), ())
    at = project.series_folder(pin.name) / LOCK
    lock = project.lock(pin.name) if at.is_file() else None
    base = bases.get(pin, source)
    tree = base.tree(bases.store)
    derived = derive(series, tree, Selection())
    return Standing(project, pin, bases.store, base, tree, series, derived, lock)


def unsealed(standing: Standing, meant: Collection[str] | None = ()) -> list[Finding]:
    """What was edited by hand since the lock was made: a verb would lock it unseen.

    meant: patches that the verb is about, None for all of them; their lines may have been added
    to the series file by hand. An edit of a header only is a note: it changes no tree.
    """
    lock = standing.lock
    if lock is None:
        return []
    out = [*_pin_changed(lock.pin, locked_pin(standing.pin)), *_base_changed(standing, lock)]
    if meant is None:
        return out
    relock = f"see what changed, and, if it is meant: patchkit lock --pin {standing.pin.name}"
    locked = dict(lock.patches)
    old = [e for e in standing.series.entries if e.patch not in meant or e.patch in locked]
    if entries_digest(old) != lock.entries:
        out.append(
            Finding(
                "series-edited",
                "the series file was edited by hand since it was locked",
                Where(file=os.path.join("series", standing.pin.name, "series")),
                expected=", ".join(name for name, _ in lock.patches) or "no patch",
                found=", ".join(entry.text() for entry in standing.series.entries) or "no patch",
                next=relock,
            )
        )
        return out
    for index, patch in enumerate(standing.series.patches):
        if patch.name in meant or locked.get(patch.name) == patch.sha256:
            continue
        same = _effect_is_locked(standing, lock, index)
        what = "its header was edited" if same else "it was edited"
        finding = Finding(
            "patch-edited",
            f"{patch.name}: {what} by hand since it was locked",
            Where(patch=patch.name),
            expected=f"sha256 {locked.get(patch.name, 'none')}",
            found=f"sha256 {patch.sha256}",
            next="" if same else relock,
            note=same,
        )
        out.append(finding)
    return out


def _effect_is_locked(standing: Standing, lock: Lock, index: int) -> bool:
    found = {path: blob_of(file) for path, file in standing.changes(index).items()}
    return found == effects(lock).get(standing.names[index], {})


def effects(lock: Lock) -> dict[str, dict[str, Blob | None]]:
    """What each patch leaves at the paths that it changes, by the lock."""
    out: dict[str, dict[str, Blob | None]] = {}
    for path, steps in lock.series.paths.items():
        for step in steps[1:]:
            out.setdefault(step.patch, {})[path] = step.blob
    return out


def _base_changed(standing: Standing, lock: Lock) -> list[Finding]:
    """The base is the one that was locked: the whole tree where the lock knows this source, else
    the files that patches touch."""
    base = standing.base
    trees = lock.series.trees.get(base.source)
    if trees is not None:
        if trees[0] == base.tree_id:
            return []
        expected, found = f"tree {trees[0]}", f"tree {base.tree_id}"
    else:
        differing = [
            path
            for path, steps in lock.series.paths.items()
            if blob_of(standing.tree.get(path)) != steps[0].blob
        ]
        if not differing:
            return []
        expected, found = "every touched file as it was locked", ", ".join(differing[:6])
    return [
        Finding(
            "pin-mismatch",
            f"the base of {standing.pin.name} ({base.source}) is not the one that was locked",
            Where(file=os.path.join("series", standing.pin.name, LOCK)),
            expected=expected,
            found=found,
            next="put the source back as it was, or, if it is meant: "
            f"patchkit lock --pin {standing.pin.name}",
        )
    ]


def _pin_changed(locked: LockedPin, found: LockedPin) -> list[Finding]:
    completed = locked.commit_prefix and found.commit.startswith(locked.commit_prefix)
    same_commit = completed or (locked.commit, locked.commit_prefix) == (
        found.commit,
        found.commit_prefix,
    )
    common = locked.files.keys() & found.files.keys()
    same_files = all(locked.files[name] == found.files[name] for name in common)
    if locked.name == found.name and same_commit and same_files:
        return []
    return [
        Finding(
            "pin-mismatch",
            f"pin {found.name} is not the one that the series was locked on",
            Where(file=PINS),
            expected=f"commit {locked.commit or locked.commit_prefix or '(none)'}",
            found=f"commit {found.commit or found.commit_prefix or '(none)'}"
            + ("" if same_files else ", and another digest of a file"),
            next=f"put pins.toml back, or, if it is meant: patchkit lock --pin {found.name}",
        )
    ]
