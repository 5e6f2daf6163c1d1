"""Patches of which upstream touched no line, not even of their context: put where they moved to.

What upstream changed in a file is compared once; after each patch, which changes both sides alike,
the changes only move. A hunk with a common line between it and every one of them has one place in
the release, by arithmetic, and a three-way merge would come to the same file. Where anything else
is the case nothing is said, and the merge decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchkit.derive.carry import Files
from patchkit.engine.chunks import Lines
from patchkit.engine.content import Text, TextFile, text_of
from patchkit.engine.diff import Range, diff_lines
from patchkit.engine.model import SYMLINK, File, Hunk
from patchkit.engine.outcome import Edit, Outcome
from patchkit.engine.place import splice_at


@dataclass(frozen=True)
class Put:
    """What a patch makes of the release, and by path where its hunks were put (0-based lines)."""

    changes: Mapping[str, File | None]
    starts: Mapping[str, Sequence[int]]


class Shifts:
    """Upstream's changes, path by path, between the old chain's file and the new one's."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[Range]] = {}

    def forget(self, paths: Iterable[str]) -> None:
        """The two sides of these paths were not changed alike: they are compared anew."""
        for path in paths:
            self._ranges.pop(path, None)

    def carried(self, outcome: Outcome, before: Files, now: Files) -> Put | None:
        """What the patch makes of `now`; None where that takes a merge.

        before: the tree that the patch made `outcome` of.
        """
        edits = {edit.new: edit for edit in outcome.edits}
        if len(edits) != len(outcome.edits) or edits.keys() != outcome.changes.keys():
            return None
        made: dict[str, File | None] = {}
        places: dict[str, list[int]] = {}
        moved: dict[str, list[Range]] = {}
        for path, edit in edits.items():
            after = outcome.changes[path or ""]
            if path is None or after is None or edit.old != path or not edit.hunks:
                return None
            old, new = before.get(path), now.get(path)
            if old is None or new is None or {old.mode, new.mode} != {after.mode}:
                return None
            if after.mode == SYMLINK:
                return None
            ranges = self._ranges.get(path)
            if ranges is None:
                ranges = diff_lines(text_of(old).lines, text_of(new).lines, by_indent=False)
            placed = _placed(edit, ranges, text_of(new).lines)
            if placed is None:
                return None
            places[path], moved[path] = placed
            lines = splice_at(text_of(new).lines, edit.hunks, places[path])
            made[path] = TextFile(Text(lines), after.mode)
        self._ranges.update(moved)
        return Put(made, places)


def _placed(edit: Edit, ranges: list[Range], lines: Lines) -> tuple[list[int], list[Range]] | None:
    """The hunks' places in the release, and upstream's changes after them; None where one of the
    hunks touches one of the changes, or has no context at an end."""
    starts: list[int] = []
    after: list[Range] = []
    at = net = shift = 0
    for hunk, start in zip(edit.hunks, edit.starts, strict=True):
        stop = start + len(hunk.old)
        while at < len(ranges) and ranges[at][1] < start:
            after.append(_moved(ranges[at], net))
            shift = ranges[at][3] - ranges[at][1]
            at += 1
        if at < len(ranges) and ranges[at][0] <= stop:
            return None
        place = start + shift
        if not _inner(hunk) or tuple(lines[place : place + len(hunk.old)]) != hunk.old:
            return None
        starts.append(place)
        net += hunk.net
    after += [_moved(change, net) for change in ranges[at:]]
    return starts, after


def _inner(hunk: Hunk) -> bool:
    """Whether it has context on both ends: neither the file's start nor its end is meant."""
    return hunk.tags.startswith(b" ") and hunk.tags.endswith(b" ")


def _moved(change: Range, net: int) -> Range:
    i1, i2, j1, j2 = change
    return i1 + net, i2 + net, j1 + net, j2 + net
