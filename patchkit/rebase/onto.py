"""What `--onto` names: a pin, or a commit, tag or branch of the git server, pinned on the fly.

Such a pin is offered, and written only where the caller asks: no series may stand for a release
that pins.toml does not fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from patchkit.check.pinning import Plan, write
from patchkit.derive.base import Bases
from patchkit.derive.project import Project
from patchkit.errors import EnvironmentFault, Finding, Refused, UsageFault, Where
from patchkit.files.atomic import read_file
from patchkit.series.pins import FILE, Pin, Upstream
from patchkit.series.pins_edit import add_pin
from patchkit.source.remote import Server

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = re.compile(r"[0-9a-f]{7,39}")
SHOWN = 12
"""Digits of the commit in the name of a pin that is made of one."""


@dataclass(frozen=True)
class Onto:
    """pin: what is meant. offered: it is not in pins.toml. asked: the name it was asked for by."""

    pin: Pin
    offered: bool = False
    asked: str = ""

    @property
    def stable(self) -> str:
        """A name that stays: of a branch its own, without the commit that it stands at today."""
        named = self.offered and not _COMMIT.fullmatch(self.asked)
        return self.asked.replace("/", "-") if named else self.pin.name

    @property
    def options(self) -> str:
        """What `patchkit rebase` is to be told to carry a series there."""
        return f"{self.pin.commit} --add-pin" if self.offered else self.pin.name


def widened(bases: Bases, old: Pin, names: Iterable[str]) -> list[Onto]:
    """What each of `names` means; the project of `bases` knows the pins made on the fly, too.

    old: the pin that is moved from; its upstream's server is asked. Raises UsageFault(bad-pins)
    for what is neither a pin nor known to the server, Refused(tag-moved).
    """
    found: list[Onto] = []
    for name in names:
        project = bases.project
        if name in project.pins.pins:
            found.append(Onto(project.pins.pin(name)))
            continue
        pin = _made(bases, project.pins.upstream_of(old), name)
        known = project.pins.pins.get(pin.name)
        if known is not None and known.commit == pin.commit:
            found.append(Onto(known))
            continue
        if known is not None:
            raise Refused(_taken(known, pin))
        pins = replace(project.pins, pins={**project.pins.pins, pin.name: pin})
        bases.project = replace(project, pins=pins)
        found.append(Onto(pin, True, name))
    return found


def write_pin(project: Project, pin: Pin) -> None:
    """Add a pin that was made on the fly to pins.toml."""
    data = add_pin(read_file(project.folder / FILE, 4 << 20), pin)
    write(project, Plan(pin, data, None, (), True))


def as_toml(pin: Pin) -> list[str]:
    """The lines that pins.toml gets."""
    return [f'[pins."{pin.name}"]', f'upstream = "{pin.upstream}"', f'commit = "{pin.commit}"']


def add_command(pin: Pin) -> str:
    """The command that pins it."""
    return f"patchkit pin {pin.name} --add --commit {pin.commit}"


def _made(bases: Bases, upstream: Upstream, name: str) -> Pin:
    """A pin of the commit that `name` means at the upstream's git server."""
    if not upstream.git:
        return bases.project.pins.pin(name)  # says what there is
    if _COMMIT.fullmatch(name):
        return Pin(f"commit-{name[:SHOWN]}", upstream.name, name)
    if bases.offline:
        why = "--offline forbids asking the git server"
    elif _DIGITS.fullmatch(name):
        why = f"a commit is named by all of its 40 digits, not by {len(name)}"
    else:
        try:
            kind, commit = Server(bases.store, upstream, name).find(name)
        except EnvironmentFault as error:
            why = error.findings[0].message
        else:
            if commit:
                made = name if kind == "tags" else f"{name.replace('/', '-')}-{commit[:SHOWN]}"
                return Pin(made, upstream.name, commit)
            why = "the git server has no such tag or branch"
    try:
        return bases.project.pins.pin(name)
    except UsageFault as fault:
        expected = "a pin, or a tag, a branch or a whole commit id of the git server"
        (finding,) = fault.findings
        raise UsageFault(replace(finding, expected=expected, found=f"{name}: {why}")) from None


def _taken(known: Pin, pin: Pin) -> Finding:
    return Finding(
        "tag-moved",
        f"{FILE} has a pin {known.name}, and the git server says another commit for that name",
        Where(file=FILE),
        expected=f"commit {known.commit or known.commit_prefix}",
        found=f"commit {pin.commit}",
        next="ask upstream why, and compare with the release page",
    )
