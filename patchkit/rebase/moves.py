"""Where a file went that a release no longer has at its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchkit.derive.carry import Files
from patchkit.engine.model import File
from patchkit.engine.text import split_lines
from patchkit.store.tree import StoreTree

ENOUGH = 0.5
"""Share of the old file's lines that the new one must have: git's own default for renames."""
LEAD = 0.1
"""How much better the best candidate must be than the next: else it is not clear."""


class ByOldNames:
    """A tree asked by the old names of files that have moved."""

    def __init__(self, tree: Files, where: Mapping[str, str]) -> None:
        self._tree = tree
        self._where = where

    def get(self, path: str) -> File | None:
        """The file that was at `path`."""
        return self._tree.get(self._where.get(path, path))


def moves(old: StoreTree, new: StoreTree, paths: Iterable[str]) -> dict[str, str]:
    """Old path -> new path of those `paths` that `old` has and `new` has elsewhere.

    A candidate is new in the release and shares enough lines. Those with the same last part are
    asked first: the rest are many, and are read only where a name says nothing.
    """
    found: dict[str, str] = {}
    for path in paths:
        before = old.get(path)
        if before is None or new.listed(path) is not None:
            continue
        name = path.rpartition("/")[2]
        same = [p for p in new.named(name) if old.listed(p) is None]
        place = _most_alike(before, new, same)
        if place is None:
            alike = [f.path for f in new.added(old) if _kind(f.path) == _kind(path)]
            new.prefetch(alike)
            place = _most_alike(before, new, alike)
        if place is not None:
            found[path] = place
    return found


def _most_alike(file: File, new: StoreTree, candidates: Iterable[str]) -> str | None:
    """The candidate that shares most lines; None where none shares enough, or two about as many."""
    scored = sorted(
        (likeness(file, other), path) for path in candidates if (other := new.get(path)) is not None
    )
    if not scored or scored[-1][0] < ENOUGH:
        return None
    if len(scored) > 1 and scored[-1][0] - scored[-2][0] < LEAD:
        return None
    return scored[-1][1]


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


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
