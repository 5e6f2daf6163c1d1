"""Where a patch was carried to: what an edit of it does not reach by itself."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.derive.project import Project
from patchkit.derive.proofs import origins_of


def heirs(project: Project, pin: str, patches: Iterable[str]) -> dict[str, list[str]]:
    """Release -> those of `patches` of `pin` that stand there, carried from just there."""
    wanted = {f"{pin}/{patch}": patch for patch in patches}
    found: dict[str, list[str]] = {}
    for other in project.pins.pins if wanted else ():
        if other == pin or not project.has_series(other):
            continue
        there = set(origins_of(project, other).values())
        names = [patch for origin, patch in wanted.items() if origin in there]
        if names:
            found[other] = names
    return found
