"""New pins, and pins made whole: what the index, the sdist and the git server say, compared.

Everything is asked and compared before a byte is written. Where the git server cannot be asked,
a release is pinned by what its sdist says of its commit (its first digits), and that is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from patchkit.check.unused import incomplete
from patchkit.derive.project import Project
from patchkit.derive.relock import locked_pin
from patchkit.errors import EnvironmentFault, Finding, Refused, UsageFault, Where
from patchkit.files.atomic import read_file, write_file
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockjson import dumps
from patchkit.series.pins import FILE, Pin, Upstream, load_pins, usable_name
from patchkit.series.pins_edit import add_pin, complete_pin, set_files
from patchkit.source import Base, Progress, open_source, silent
from patchkit.source.pinned import SDIST
from patchkit.source.release import (
    release_of,
    tag_commit,
    tag_names,
    version_in,
    version_of,
)
from patchkit.store.repo import Store

_WHOLE = re.compile(r"[0-9a-f]{40}")
_DIGITS = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True)
class Plan:
    """What is to be written. data: the new pins.toml; lock: the new lock of the pin, where it has
    one that repeats the old pin. findings: notes. changed: whether anything is new."""

    pin: Pin
    data: bytes
    lock: bytes | None
    findings: tuple[Finding, ...]
    changed: bool


@dataclass(frozen=True)
class Asked:
    """What a new pin is made from. name: its name, which is the tag's where there is one. commit:
    7 to 40 hex digits, or "". version: a release, or "" for the one that the name states."""

    name: str
    upstream: Upstream
    commit: str = ""
    version: str = ""


def add(project: Project, store: Store, asked: Asked, progress: Progress = silent) -> Plan:
    """The plan of a new pin, from a tag, a release or a commit.

    Raises Refused where the name is taken (bad-pins), where tag, commit and sdist contradict each
    other (tag-moved, pin-mismatch) or nothing is known of it; EnvironmentFault(network) where a
    release that was asked for cannot be had.
    """
    if asked.name in project.pins.pins:
        raise Refused(_taken(project, asked.name))
    notes: list[Finding] = []
    commit = _commit(store, asked, notes, progress)
    files = _files(asked, commit, notes, progress)
    pin = _pin(asked, commit, files)
    if any(name.endswith(SDIST) for name in files):
        base = _base("sdist", store, pin, asked.upstream, progress)
        pin = _with_digits(pin, base.commit)
        notes += base.gaps
    elif commit and not any(f.name == "network" for f in notes):
        notes += _base("git", store, pin, asked.upstream, progress).gaps
    if not pin.commit and not pin.files:
        raise Refused(_nothing(asked, notes))
    data = add_pin(_pins_file(project), pin)
    return Plan(pin, data, None, (*notes, *incomplete(pin)), True)


def complete(project: Project, store: Store, name: str, progress: Progress = silent) -> Plan:
    """The plan that makes a pin whole: the commit that its tag names, and its release's files
    where it has none.

    Raises Refused(tag-moved) where there is no such tag or it is not the pinned commit,
    EnvironmentFault(network) where the git server or the index cannot be asked.
    """
    pin = project.pins.pin(name)
    upstream = project.pins.upstream_of(pin)
    progress(f"ask {upstream.name} for {name}", 0)
    try:
        found = tag_commit(store, upstream, *tag_names(name, version_in(name) or version_of(pin)))
    except EnvironmentFault as error:
        then = "run it where the git server can be reached; until then all else works as it is"
        raise EnvironmentFault(*(replace(f, next=then) for f in error.findings)) from None
    if not found or ((pin.commit or pin.commit_prefix) and not pin.is_of(found)):
        raise Refused(_moved(name, pin.commit or pin.commit_prefix, found))
    data = complete_pin(_pins_file(project), name, found)
    whole = replace(pin, commit=found, commit_prefix="")
    notes: tuple[Finding, ...] = ()
    if not any(file.endswith(SDIST) for file in pin.files):
        version = version_in(name)
        if version:
            release = release_of(upstream, version)
            data = set_files(data, name, release.files)
            whole = load_pins(data).pin(name)
            notes = release.notes
    if whole != pin and any(file.endswith(SDIST) for file in whole.files):
        # The sdist says which commit it was made from: a third witness.
        notes += _base("sdist", store, whole, upstream, progress).gaps
    return Plan(whole, data, _lock(project, pin, whole), notes, whole != pin)


def write(project: Project, plan: Plan) -> None:
    """Write a plan: pins.toml first. A lock of the incomplete pin is still good if the second
    write is cut off."""
    write_file(project.folder / FILE, plan.data)
    if plan.lock is not None:
        write_file(project.series_folder(plan.pin.name) / LOCK, plan.lock)


def asked_for(
    project: Project, name: str, upstream: str | None, commit: str | None, version: str | None
) -> Asked:
    """A command line's options as one value. Raises UsageFault, Refused(bad-pins)."""
    if not usable_name(name):
        raise UsageFault.because(
            f"{name!r} cannot be the name of a pin",
            next="letters, digits, . _ + - as in v0.34.0; --version says which release it is",
        )
    known = project.pins.upstreams
    if upstream is None and len(known) != 1:
        raise UsageFault.because(
            "--upstream is needed: "
            + (f"there are {', '.join(known)}" if known else f"{FILE} has none"),
            next=f"--upstream {next(iter(known), 'NAME')}",
        )
    chosen = upstream if upstream is not None else next(iter(known))
    if chosen not in known:
        raise UsageFault.because(
            f"{FILE} has no upstream {chosen!r}; it has {', '.join(known) or 'none'}",
            next=f"add a table [upstreams.{chosen}] to {FILE}",
        )
    if commit is not None and not _DIGITS.fullmatch(commit):
        raise UsageFault.because(f"--commit {commit} is not 7 to 40 hex digits, lower case")
    return Asked(name, known[chosen], commit or "", version or "")


def _commit(store: Store, asked: Asked, notes: list[Finding], progress: Progress) -> str:
    """The whole commit id, as the tag or the caller says it; "" where neither does."""
    whole = asked.commit if _WHOLE.fullmatch(asked.commit) else ""
    if not asked.upstream.git:
        return whole
    progress(f"ask {asked.upstream.name} for {asked.name}", 0)
    version = asked.version or version_in(asked.name)
    try:
        found = tag_commit(store, asked.upstream, *tag_names(asked.name, version))
    except EnvironmentFault as error:
        notes.append(_unasked(error, asked))
        return whole
    if found and asked.commit and not found.startswith(asked.commit):
        raise Refused(_moved(asked.name, asked.commit, found))
    return found or whole


def _files(asked: Asked, commit: str, notes: list[Finding], progress: Progress) -> dict[str, str]:
    """The release's files by the index; none where only a commit is pinned."""
    version = asked.version or version_in(asked.name)
    if not version:
        return {}
    progress(f"find {asked.upstream.name} {version}", 0)
    try:
        release = release_of(asked.upstream, version)
    except EnvironmentFault as error:
        if asked.version or not commit:
            raise
        notes.append(_no_release(error, asked, version))
        return {}
    notes += release.notes
    return release.files


def _pin(asked: Asked, commit: str, files: dict[str, str]) -> Pin:
    return Pin(asked.name, asked.upstream.name, commit, "" if commit else asked.commit, files)


def _with_digits(pin: Pin, digits: str) -> Pin:
    """The pin with what its sdist says of the commit, where no more is known."""
    if pin.commit or len(digits) <= len(pin.commit_prefix):
        return pin
    if _WHOLE.fullmatch(digits):
        return replace(pin, commit=digits, commit_prefix="")
    return replace(pin, commit_prefix=digits)


def _base(source: str, store: Store, pin: Pin, upstream: Upstream, progress: Progress) -> Base:
    """The base of a pin that is not written yet: fetched, verified, compared with all it says."""
    base = open_source(source, upstream).tree(store, pin, progress)
    if base.drift:
        raise Refused(*base.drift)
    return base


def _lock(project: Project, pin: Pin, whole: Pin) -> bytes | None:
    """The lock with the whole pin in it; None where there is none, or it is of another pin."""
    if whole == pin or not project.has_series(pin.name):
        return None
    try:
        lock = project.lock(pin.name)
    except Refused:
        return None
    if lock.pin != locked_pin(pin):
        return None  # check says it; an edit here would hide it
    return dumps(replace(lock, pin=locked_pin(whole)))


def _pins_file(project: Project) -> bytes:
    return read_file(project.folder / FILE, 4 << 20)


def _taken(project: Project, name: str) -> Finding:
    pin = project.pins.pins[name]
    return Finding(
        "bad-pins",
        f"{FILE} already has the pin {name}",
        Where(file=FILE),
        expected="a new name",
        found=f"a pin of {pin.upstream}, commit {pin.commit or pin.commit_prefix or 'unknown'}",
        next="patchkit list" if pin.complete else f"patchkit pin {name} --complete",
    )


def _moved(name: str, commit: str, found: str) -> Finding:
    return Finding(
        "tag-moved",
        f"the tag {name} is not the commit that is pinned" if found else f"there is no tag {name}",
        Where(file=FILE),
        expected=f"commit {commit}" + ("…" if len(commit) < 40 else "") if commit else "a tag",
        found=f"commit {found}" if found else "no such tag",
        next="ask upstream why, and compare with the release page" if found else "check the name",
    )


def _nothing(asked: Asked, notes: list[Finding]) -> Finding:
    return Finding(
        "pin-incomplete",
        f"nothing is known of {asked.name}: no tag, no release, no whole commit id",
        expected="a tag or a release of that name, or --version V, or --commit with 40 hex digits",
        found="; ".join(note.message for note in notes) or "none of them",
        next=f"patchkit pin {asked.name} --add --version V",
    )


def _unasked(error: EnvironmentFault, asked: Asked) -> Finding:
    first = error.findings[0]
    return replace(
        first,
        message=f"the tag was not compared: {first.message}",
        next=f"patchkit pin {asked.name} --complete, with a network",
        note=True,
    )


def _no_release(error: EnvironmentFault, asked: Asked, version: str) -> Finding:
    return replace(
        error.findings[0],
        message=f"{asked.name} is pinned by its commit alone: the index has no release {version}",
        next=f"--source git, or patchkit pin {asked.name} --complete once it is released",
        note=True,
    )
