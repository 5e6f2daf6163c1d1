"""Every wheel that a project's pins and stacks promise, each with the one command that makes it.

A cell is pin × stack × how × architecture × Python × CUDA. Its id is made of these alone, so it
stays the same; its key is a digest of everything that its wheel depends on and that the project
holds, so it changes exactly when the wheel may.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from patchkit.build.basewheel import wheel_name
from patchkit.build.changes import needs_build
from patchkit.derive.builds import paths_of
from patchkit.derive.project import Project
from patchkit.errors import Refused
from patchkit.series.folder import Series
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockfile import Lock
from patchkit.series.lockjson import loads
from patchkit.series.pins import FILE as PINS
from patchkit.series.pins import Pin, Pins, Stack, Upstream, load_pins
from patchkit.target.installed_state import series_digest
from patchkit.upstreams import known
from patchkit.upstreams.building import recipe

TOOL = ("patchkit", "ci", "requirements.txt", "pyproject.toml")
"""Paths of a project that holds the tool itself: a change there may change every wheel."""
_MAKES = ("create", "rename", "copy")
Read = Callable[[str], bytes | None]
"""A path of the project -> its bytes, None where it is not there."""


@dataclass(frozen=True)
class Cell:
    """One wheel. arch: x86_64 or aarch64. python: the interpreter's release, "" where the wheel
    is for all. cuda: "" without. runnable: whether a machine without compiler and GPU does it."""

    pin: str
    stack: str
    how: str
    arch: str
    python: str
    cuda: str
    key: str

    @property
    def id(self) -> str:
        """Its name in artefacts, logs and branch rules."""
        parts = [self.pin, self.stack, self.how, self.arch]
        parts += [f"py{self.python}"] if self.python else []
        parts += [f"cu{self.cuda.replace('.', '')}"] if self.cuda else []
        return "-".join(parts)

    @property
    def runnable(self) -> bool:
        return self.how in ("overlay", "empty")

    @property
    def command(self) -> tuple[str, ...]:
        """What makes the wheel."""
        line = ["patchkit", "build", "--pin", self.pin, "--stack", self.stack, "--how", self.how]
        if self.how == "empty":
            return tuple(line)
        return (*line, "--arch", self.arch)


def cells(project: Project) -> list[Cell]:
    """All cells of a project, in the order of pins.toml. Raises Refused where a series or a lock
    cannot be read."""
    out: list[Cell] = []
    for pin in project.pins.pins.values():
        if project.has_series(pin.name):
            series, lock = project.series(pin.name), project.lock(pin.name)
            upstream = project.pins.upstream_of(pin)
            for stack in project.locked_stacks:
                out += _of_stack(upstream, pin, stack, series, lock)
    return out


def _of_stack(
    upstream: Upstream, pin: Pin, stack: Stack, series: Series, lock: Lock
) -> Iterator[Cell]:
    if stack.name not in lock.stacks:
        return
    made = recipe(upstream.kind)
    key = _key(upstream, pin, stack, lock)

    def cell(how: str, arch: str, python: str = "", cuda: str = "") -> Cell:
        return Cell(pin.name, stack.name, how, arch, python, cuda, key)

    if not _native(upstream, stack, series):
        for arch in _arches(pin):
            yield cell("overlay", arch, "", made.cuda)
        if made.empty is not None:
            for python in made.pythons:
                yield cell("empty", "x86_64", python)
        return
    if "cuda" in made.native:
        for arch in sorted(made.arches):
            yield cell("cuda", arch, made.pythons[0], made.cuda)
    if "cpu" in made.native:
        yield cell("cpu", "x86_64", made.pythons[0])


def _native(upstream: Upstream, stack: Stack, series: Series) -> bool:
    """Whether a selected patch names a path that no overlay takes, or makes a compiled source that
    no wheel can have yet."""
    facts = known(upstream)
    taken = series.selected(stack.guards)
    for patch, entry, yes in zip(series.patches, series.entries, taken, strict=True):
        if not yes:
            continue
        made = paths_of([s for s in patch.sections if s.kind in _MAKES], entry.strip)
        touched = paths_of(patch.sections, entry.strip)
        if any(needs_build(facts, p) for p in touched) or any(facts.native(p) for p in made):
            return True
    return False


def _arches(pin: Pin) -> list[str]:
    """Architectures for which the pin states a wheel; one for a wheel that is for all."""
    found = set()
    for name in pin.files:
        if name.endswith(".whl"):
            for tag in wheel_name(name).tags:
                platform = tag.rpartition("-")[2]
                known_arch = next((a for a in ("x86_64", "aarch64") if platform.endswith(a)), None)
                found.add(known_arch or "x86_64")
    return sorted(found, reverse=True)


def _key(upstream: Upstream, pin: Pin, stack: Stack, lock: Lock) -> str:
    chain = lock.stacks.get(stack.name)
    facts = [
        [upstream.kind, upstream.pypi, upstream.package, upstream.root],
        [pin.name, pin.commit, pin.commit_prefix, sorted(pin.files.items())],
        sorted([*where, commit] for where, commit in pin.sources.items()),
        [stack.name, sorted(stack.guards)],
        series_digest(lock, chain.patches) if chain is not None else "",
        sorted(chain.trees.items()) if chain is not None else [],
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def affected(project: Project, found: list[Cell], then: Read, tool_changed: bool) -> list[Cell]:
    """The cells whose key was another one, or that were not there, when `then` read the project.

    tool_changed: whether what makes the wheels changed; then all are.
    """
    if tool_changed:
        return found
    before = _keys(then)
    return [cell for cell in found if before.get((cell.pin, cell.stack)) != cell.key]


def _keys(read: Read) -> Mapping[tuple[str, str], str]:
    """Keys of an earlier state, by pin and stack; empty where it cannot be read."""
    data = read(PINS)
    if data is None:
        return {}
    try:
        pins = load_pins(data, PINS)
    except Refused:
        return {}
    out = {}
    for pin in pins.pins.values():
        path = f"series/{pin.name}/{LOCK}"
        lock_data = read(path)
        if lock_data is None:
            continue
        try:
            lock = loads(lock_data, path)
        except Refused:
            continue
        for stack in _stacks(pins):
            out[pin.name, stack.name] = _key(pins.upstream_of(pin), pin, stack, lock)
    return out


def _stacks(pins: Pins) -> list[Stack]:
    have = dict(pins.stacks)
    have.setdefault("default", Stack("default"))
    return list(have.values())


def since(project: Project, name: str) -> tuple[Read, bool]:
    """How to read the project as it was at a git revision, and whether the tool changed since.

    Raises Refused(unsupported) where git does not know the revision.
    """
    from patchkit.build.revision import Revision
    from patchkit.store import git

    at = str(project.folder)
    revision = Revision(at, name)
    # The project may stand below the repository's top.
    extra = {"GIT_CEILING_DIRECTORIES": ""}
    changed = git.attempt(["diff", "--quiet", revision.commit, "--", *TOOL], cwd=at, extra=extra)
    return revision.read, changed.returncode != 0
