"""What the command and the bundle say alike of what was done.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from patchkit.target.installed_words import of

if TYPE_CHECKING:
    from patchkit.target.installed import Done
    from patchkit.upstreams.caches import Stale


def taken_back(done: Done, dry: bool) -> list[str]:
    """What a revert that was not refused did, or would do, one line each."""
    verb = "would be taken back" if dry else "taken back"
    lines = [
        f"{plan.dist.name} {plan.dist.version}: {verb}: {of(plan.state)}"
        for plan in done.plans
        if plan.state is not None
    ]
    if done.plans:
        would = "would be " if dry else ""
        return [*lines, f"{len(done.changed)} file(s) {would}put back in {done.site}"]
    return [f"no package there is patched now, nothing else was to be taken back in {done.site}"]


def clear_caches(caches: Iterable[Stale]) -> list[str]:
    """Which caches may hold old code, and the command that clears each."""
    lines = []
    for cache in caches:
        more = f" and {len(cache.files) - 1} more" if len(cache.files) > 1 else ""
        lines += [
            f"{cache.name} may hold old code of {cache.files[0]}{more}; clear it with:",
            f"  {cache.clear}",
        ]
    return lines
