"""Which hunks of a patch a release has already."""

from __future__ import annotations

from collections.abc import Mapping

from patchkit.engine.diff import make_hunks
from patchkit.engine.model import File
from patchkit.engine.text import split_lines

Core = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Removed and added lines of a change, without context."""


def taken(
    before: Mapping[str, File | None],
    after: Mapping[str, File | None],
    now: Mapping[str, File | None],
    merged: Mapping[str, File | None],
) -> tuple[list[str], int]:
    """Hunks of before -> after that now -> merged does not make any more.

    All four: the touched paths, under the names of the old base. Gives a word for each such hunk
    ("vllm/x.py line 12") and how many hunks there are in all.
    """
    gone: list[str] = []
    total = 0
    for path in sorted(after):
        left = [core for _, core in _cores(now.get(path), merged.get(path))]
        for line, core in _cores(before.get(path), after.get(path)):
            total += 1
            if core in left:
                left.remove(core)
            elif not _made_of(core, left):
                gone.append(f"{path} line {line}")
    return gone, total


def _cores(old: File | None, new: File | None) -> list[tuple[int, Core]]:
    if old is None and new is None:
        return []
    one = split_lines(old.data) if old is not None else []
    two = split_lines(new.data) if new is not None else []
    found = []
    for hunk in make_hunks(one, two, 0):
        removed = tuple(c for t, c in hunk.lines if t == b"-")
        added = tuple(c for t, c in hunk.lines if t == b"+")
        found.append((max(hunk.old_start, 1), (removed, added)))
    return found


def _made_of(core: Core, left: list[Core]) -> bool:
    """Whether some change that is left still makes most of this one (merged with a neighbour)."""
    wanted = set(core[1]) or set(core[0])
    have = {line for other in left for line in (*other[0], *other[1])}
    return bool(wanted) and len(wanted & have) * 2 >= len(wanted)
