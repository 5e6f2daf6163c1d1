"""`patchkit check --installed`: what the installed packages are, fit for an entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchkit.cli.apply_installed import Asked
from patchkit.cli.out import Out
from patchkit.errors import Finding, Refused

if TYPE_CHECKING:
    from patchkit.derive.project import Project
    from patchkit.series.pins import Stack
    from patchkit.target.dist_info import Dist
    from patchkit.target.installed_check import Status
    from patchkit.target.installed_packet import Packet


def check_installed(out: Out, asked: Asked) -> int:
    """Compare with the project's lock; without a project, or for loose patches, with what is
    recorded. The exit code is returned: 0 only where everything is as it is to be."""
    from patchkit.target.installed_check import status

    sites = asked.sites()
    rows, reports = [], []
    for dist, packet in _targets(asked, sites):
        found = status(dist, packet, asked.words())
        out.find(found.findings)
        rows.append((dist.name, dist.version, found.words, dist.site))
        reports.append(_json(found))
    out.put(packages=reports)
    out.table("", ("package", "version", "state", "site"), rows)
    return out.close()


def _targets(asked: Asked, sites: tuple[str, ...]) -> list[tuple[Dist, Packet | None]]:
    from patchkit.target.dist_info import patched

    project = _project(asked)
    if project is None or _loose_only(asked, sites):
        found = patched(sites)
        if not found:
            raise Refused(
                Finding(
                    "partly-applied",
                    "no installed package there is patched",
                    expected="a package with a patchkit.json in its dist-info",
                    found="none in " + (", ".join(sites) or "no folder at all"),
                    next=asked.words().apply,
                )
            )
        return [(dist, None) for dist in found]
    return _of_project(project, asked, sites)


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


def _of_project(
    project: Project, asked: Asked, sites: tuple[str, ...]
) -> list[tuple[Dist, Packet | None]]:
    from patchkit.check.installed import choose_pins, distribution, packet
    from patchkit.derive.selection import Selection
    from patchkit.target.dist_info import find_dist

    out: list[tuple[Dist, Packet | None]] = []
    for pin in choose_pins(project, asked.pins, sites):
        upstream = project.pins.upstream_of(pin)
        dist = find_dist(sites, distribution(upstream), upstream.package)
        selection = Selection(_stack(project, asked, dist, pin.name))
        out.append((dist, packet(project, pin, selection, _excluded(dist), lock_only=True)))
    return out


def _stack(project: Project, asked: Asked, dist: Dist, pin: str) -> Stack | None:
    """The stack to compare with: the one asked about, else the recorded one, else default."""
    from patchkit.target.installed_base import read_state

    if asked.every:
        return None
    if asked.stack is not None:
        return project.stack(asked.stack)
    state = read_state(dist)
    if state is not None and state.kind == "series" and state.lock.pin.name == pin:
        if state.stack is None:
            return None
        if state.stack in {stack.name for stack in project.locked_stacks}:
            return project.stack(state.stack)
    return project.stack("default")


def _excluded(dist: Dist) -> tuple[str, ...]:
    from patchkit.target.installed_base import read_state

    state = read_state(dist)
    return state.exclude if state is not None else ()


def _json(found: Status) -> dict[str, object]:
    state = found.state
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
        "paths": [{"path": p, "state": k, "after": after} for p, k, after in found.paths],
    }
