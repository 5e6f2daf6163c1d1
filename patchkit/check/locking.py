"""Writing a pin's lock, and saying what changed in it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from patchkit.derive.base import Bases
from patchkit.derive.project import Project
from patchkit.derive.relock import make_lock
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import write_file
from patchkit.series.lockfile import FILE, Lock
from patchkit.series.lockjson import dumps


@dataclass(frozen=True)
class Locked:
    """What became of a lock. state: new, changed, unchanged or refused; paths: whose chain
    changed."""

    state: str
    findings: tuple[Finding, ...]
    paths: tuple[str, ...] = ()


def relock(
    project: Project, name: str, bases: Bases, *, source: str | None = None, dry: bool = False
) -> Locked:
    """Derive the lock of pin `name` and write it. dry: a lock that would change is a finding."""
    pin = project.pins.pin(name)
    series = project.series(name)
    base = bases.get(pin, source)
    made = make_lock(project, pin, series, bases.store, {base.source: base})
    findings = (*series.findings, *made.findings)
    if made.lock is None:
        return Locked("refused", findings)
    at = project.series_folder(name) / FILE
    try:
        old: Lock | None = project.lock(name)
    except Refused:
        old = None
    if old is not None and dumps(old) == dumps(made.lock):
        return Locked("unchanged", findings)
    paths = _changed(old, made.lock)
    if dry:
        stale = Finding(
            "lock-stale",
            f"the lock of {name} is not what applying gives now",
            Where(file=os.path.join("series", name, FILE)),
            expected="the lock that patchkit lock writes",
            found="no lock" if old is None else f"another: {', '.join(paths) or 'digests only'}",
            next=f"patchkit lock --pin {name}",
        )
        return Locked("changed", (*findings, stale), paths)
    write_file(at, dumps(made.lock))
    return Locked("new" if old is None else "changed", findings, paths)


def _changed(old: Lock | None, new: Lock) -> tuple[str, ...]:
    if old is None:
        return tuple(new.series.paths)
    every = {*old.series.paths, *new.series.paths}
    return tuple(sorted(p for p in every if old.series.paths.get(p) != new.series.paths.get(p)))
