"""`patchkit check --installed`: what the installed packages are, fit for an entry point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchkit.cli.apply_installed import Asked
from patchkit.cli.out import Out
from patchkit.errors import Finding, Refused

ASKED = "asked"
RECORDED = "recorded"
DEFAULT = "default"

if TYPE_CHECKING:
    from patchkit.derive.project import Project
    from patchkit.series.pins import Stack
    from patchkit.target.dist_info import Dist
    from patchkit.target.installed_check import Status
    from patchkit.target.installed_packet import Packet
    from patchkit.target.installed_words import Words


def check_installed(out: Out, asked: Asked) -> int:
    """Compare with the project's lock; without a project, or for loose patches, with what is
    recorded. The exit code is returned: 0 only where everything is as it is to be."""
    from patchkit.target.installed_check import status

    sites = asked.sites()
    rows, reports, lines = [], [], []
    for each in _targets(asked, sites):
        found = status(each.dist, each.packet, each.words)
        out.find((*each.stale, *found.findings))
        rows.append((each.dist.name, each.dist.version, found.words, each.dist.site))
        reports.append(_json(found, each))
        lines.append(f"{each.dist.name}: {_against(found, each)}")
    out.put(packages=reports)
    out.table("", ("package", "version", "state", "site"), rows)
    for line in lines:
        out.line(line)
    return out.close()


@dataclass(frozen=True)
class _Target:
    """A package and what it is compared with; packet None: its own record. why: ASKED, RECORDED
    or DEFAULT, whence the stack is. words: the commands for exactly that. stale: how the series
    folder differs from the lock."""

    dist: Dist
    packet: Packet | None
    why: str
    words: Words
    stale: Sequence[Finding] = ()


def _targets(asked: Asked, sites: tuple[str, ...]) -> list[_Target]:
    from patchkit.target.dist_info import patched, record_lost
    from patchkit.target.installed_base import journal_finding

    project = _project(asked)
    if project is None or _loose_only(asked, sites):
        found = patched(sites) or record_lost(sites)
        stopped = [journal_finding(site, asked.words()) for site in sites if not found]
        if any(stopped):
            raise Refused(*(finding for finding in stopped if finding is not None))
        if not found:
            raise Refused(
                Finding(
                    "partly-applied",
                    "no installed package there is patched",
                    expected="a package with a patchkit.json in its dist-info",
                    found="none in " + (", ".join(sites) or "no folder at all"),
                    next=asked.words().apply
                    if project is not None
                    else "to patch one: run patchkit apply --installed in the folder of a project "
                    "(or with -C), or give it patch files",
                )
            )
        return [_Target(dist, None, RECORDED, asked.words()) for dist in found]
    return _of_project(project, asked, sites)


def _against(found: Status, target: _Target) -> str:
    if target.packet is None:
        return (
            "compared with its own record only, so any patches pass; with --pin and --stack it is "
            "compared with a lock"
        )
    why = {
        ASKED: "",
        RECORDED: " (the stack that its record names; --stack asks for one)",
        DEFAULT: " (no stack was named)",
    }[target.why]
    excluded = "".join(f" --exclude '{pattern}'" for pattern in target.packet.exclude)
    return f"compared with the lock: {found.against}{excluded}{why}"


def _project(asked: Asked) -> Project | None:
    """The project; None where there is none and none is needed."""
    from patchkit.derive.project import find

    try:
        return find(asked.start)
    except Refused as refusal:
        if asked.pins or asked.stack or refusal.findings[0].name != "not-a-project":
            raise
        return None


def _loose_only(asked: Asked, sites: tuple[str, ...]) -> bool:
    """Whether all that is patched there are loose patches, and no pin is asked about."""
    from patchkit.target.dist_info import patched
    from patchkit.target.installed_base import read_state

    if asked.pins or asked.stack or asked.every:
        return False
    states = [read_state(dist) for dist in patched(sites)]
    return bool(states) and all(state is not None and state.kind == "loose" for state in states)


def _of_project(project: Project, asked: Asked, sites: tuple[str, ...]) -> list[_Target]:
    from patchkit.check.installed import choose_pins, distribution, edited_since_lock, packet
    from patchkit.derive.selection import Selection
    from patchkit.target.dist_info import find_dist

    out: list[_Target] = []
    for pin in choose_pins(project, asked.pins, sites):
        upstream = project.pins.upstream_of(pin)
        dist = find_dist(sites, distribution(upstream), upstream.package)
        stack, why = _stack(project, asked, dist, pin.name)
        exclude = asked.exclude or (() if why == ASKED else _excluded(dist))
        one = packet(project, pin, Selection(stack), exclude, lock_only=True)
        name = stack.name if stack is not None else None
        named = replace(
            asked, pins=(pin.name,), stack=name, every=stack is None, upto=None, exclude=exclude
        )
        stale = edited_since_lock(project, pin, one.lock)
        out.append(_Target(dist, one, why, named.words(), stale))
    return out


def _stack(project: Project, asked: Asked, dist: Dist, pin: str) -> tuple[Stack | None, str]:
    """The stack to compare with: the one asked about, else the recorded one, else default; and
    which of these it is."""
    from patchkit.target.installed_base import read_state

    if asked.every:
        return None, ASKED
    if asked.stack is not None:
        return project.stack(asked.stack), ASKED
    state = read_state(dist)
    if state is not None and state.kind == "series" and state.lock.pin.name == pin:
        if state.stack is None:
            return None, RECORDED
        if state.stack in {stack.name for stack in project.locked_stacks}:
            return project.stack(state.stack), RECORDED
    return project.stack("default"), DEFAULT


def _excluded(dist: Dist) -> tuple[str, ...]:
    from patchkit.target.installed_base import read_state

    state = read_state(dist)
    return state.exclude if state is not None else ()


def _json(found: Status, target: _Target) -> dict[str, object]:
    state, packet = found.state, target.packet
    return {
        "name": found.dist.name,
        "version": found.dist.version,
        "site": found.dist.site,
        "state": found.kind,
        "upto": found.patch,
        "count": found.count,
        "stack": state.stack if state is not None else None,
        "series": state.digest if state is not None else None,
        "made_by": state.made_by if state is not None else None,
        "exclude": list(state.exclude) if state is not None else [],
        "left_out": [{"path": p, "patches": list(names)} for p, names in found.left_out.items()],
        "compared_with": {"what": "record"}
        if packet is None
        else {
            "what": "lock",
            "pin": packet.lock.pin.name,
            "stack": packet.stack,
            "series": packet.digest,
            "exclude": list(packet.exclude),
            "chosen": target.why,
        },
        "paths": [{"path": p, "state": k, "after": after} for p, k, after in found.paths],
    }
