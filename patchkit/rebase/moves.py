"""Where a file went that a release no longer has at its place."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.engine.model import File
from patchkit.engine.text import split_lines
from patchkit.store.tree import StoreTree

ENOUGH = 0.5
"""Share of the old file's lines that the new one must have: git's own default for renames."""
LEAD = 0.1
"""How much better the best candidate must be than the next: else it is not clear."""


def moves(old: StoreTree, new: StoreTree, paths: Iterable[str]) -> dict[str, str]:
    """Old path -> new path of those `paths` that `old` has and `new` has elsewhere.

    A candidate has the same last part, is new in the release and shares enough lines.
    """
    found: dict[str, str] = {}
    for path in paths:
        before = old.get(path)
        if before is None or new.listed(path) is not None:
            continue
        name = path.rpartition("/")[2]
        scored = sorted(
            (
                (likeness(before, file), candidate)
                for candidate in new.named(name)
                if old.listed(candidate) is None and (file := new.get(candidate)) is not None
            ),
            reverse=True,
        )
        if scored and scored[0][0] >= ENOUGH:
            second = scored[1][0] if len(scored) > 1 else 0.0
            if scored[0][0] - second >= LEAD:
                found[path] = scored[0][1]
    return found


def likeness(one: File, two: File) -> float:
    """Share of the longer file's lines that both have, 0 to 1, order left out."""
    if one.data == two.data:
        return 1.0
    counts: dict[bytes, int] = {}
    first, second = split_lines(one.data), split_lines(two.data)
    for line in first:
        counts[line] = counts.get(line, 0) + 1
    shared = 0
    for line in second:
        if counts.get(line, 0):
            counts[line] -= 1
            shared += 1
    return shared / max(len(first), len(second), 1)
