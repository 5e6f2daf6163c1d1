"""Where a file went that a release no longer has at its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchkit.derive.carry import Files
from patchkit.engine.likeness import ENOUGH, likeness
from patchkit.engine.model import File
from patchkit.store.tree import StoreTree

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

    A candidate is new in the release and alike enough. Those with the same last part are
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
    """The candidate that is most alike; None where none is alike enough, or two about as much."""
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
