"""Which patch of a chain last changed which lines of a file.

Kept as the placed hunks of each patch, path by path; asked only when something does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchkit.engine.model import Hunk
from patchkit.engine.outcome import Edit

_REMOVED, _ADDED = b"-+"


@dataclass(frozen=True)
class Run:
    """Lines old..old+removed of a file became lines new..new+added (0-based)."""

    old: int
    removed: int
    new: int
    added: int


def runs(hunks: Sequence[Hunk], starts: Sequence[int]) -> Iterator[Run]:
    """The changed runs of hunks placed at `starts`, context left out, ascending."""
    shift = 0
    for hunk, start in zip(hunks, starts, strict=True):
        old, removed, added = start, 0, 0
        for tag in hunk.tags:
            if tag == _REMOVED:
                removed += 1
            elif tag == _ADDED:
                added += 1
            else:
                if removed or added:
                    yield Run(old, removed, old + shift, added)
                    shift += added - removed
                old += removed + 1
                removed = added = 0
        if removed or added:
            yield Run(old, removed, old + shift, added)
            shift += added - removed


class History:
    """What the patches so far did to each path, newest last. Patches are numbers."""

    def __init__(self) -> None:
        self._edits: dict[str, list[tuple[int, Edit]]] = {}
        self._gone: dict[str, int] = {}

    def record(self, patch: int, edits: Sequence[Edit]) -> None:
        """Remember what patch number `patch` did."""
        # Files may change names with each other: look all up before any is moved.
        moved = [e for e in edits if e.old != e.new]
        past = {e.new: list(self._edits.get(e.old, ())) for e in moved if e.old and e.new}
        for edit in moved:
            if edit.old is not None:
                self._gone[edit.old] = patch
            if edit.new is not None:
                self._edits[edit.new] = past.get(edit.new, [])
        for edit in edits:
            if edit.new is not None:
                self._edits.setdefault(edit.new, []).append((patch, edit))

    def gone(self, path: str) -> int | None:
        """The patch that last deleted or renamed `path`."""
        return self._gone.get(path)

    def touched(self, path: str) -> list[int]:
        """Patches that changed `path`, oldest first."""
        return list(dict.fromkeys(patch for patch, _ in self._edits.get(path, ())))

    def changed(self, path: str, start: int, stop: int) -> int | None:
        """The patch that last changed a line of start..stop (0-based) of `path` as it is now,
        or removed lines between two of them.
        """
        for patch, edit in reversed(self._edits.get(path, ())):
            if edit.old is None:
                return patch
            back_start, back_stop = start, stop
            for run in runs(edit.hunks, edit.starts):
                end = run.new + run.added
                if run.added and run.new < stop and end > start:
                    return patch
                if not run.added and start < run.new < stop:
                    return patch
                if end <= start:
                    back_start = start + run.old + run.removed - end
                if end <= stop:
                    back_stop = stop + run.old + run.removed - end
            start, stop = back_start, max(back_stop, back_start)
        return None
