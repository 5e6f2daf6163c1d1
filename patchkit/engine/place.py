"""Where the hunks of one section stand in one file.

All numbers are 0-based indexes into the file as it is before the section. Hunks are matched
against those lines in order and none may reach into the place of the one before it, which is
what git's mark on patched lines comes to.

Anchors as in git: a hunk that states line 1 stands at the start of the file, a hunk without
trailing context at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

from patchkit.engine.chunks import Chunks, Lines
from patchkit.engine.content import Text
from patchkit.engine.fuzz import Trimmed, trims
from patchkit.engine.model import Hunk
from patchkit.engine.near import near_miss
from patchkit.engine.rule import Rule

HOLDS, THERE, FAILS = "holds", "there", "fails"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk was placed. line: 1-based, in the file before the patch; offset: line found
    less line stated; fuzz: context lines dropped. hunk: 1-based number in its section.
    """

    file: str
    hunk: int
    line: int
    offset: int = 0
    fuzz: int = 0


class Stated(Sequence[Place]):
    """The places of hunks that all stand where they were looked for: made when asked for."""

    def __init__(self, file: str, starts: Sequence[int]) -> None:
        self._file, self._starts = file, starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, at: int) -> Place: ...
    @overload
    def __getitem__(self, at: slice) -> list[Place]: ...
    def __getitem__(self, at: int | slice) -> Place | list[Place]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        number = range(len(self))[at]
        return Place(self._file, number + 1, self._starts[number] + 1)


@dataclass(frozen=True, slots=True)
class Spot:
    """What became of one hunk.

    status: HOLDS (it goes to `index`), THERE (its result stands at `index` already) or FAILS.
    why, where it fails: "" (it stands nowhere), "ambiguous" (at several places), "near-miss"
    (at one, but the stated place is nearly it), "offset" (not at its stated place, under the
    exact rule), "start" or "end" (only away from its anchor), "order" (only above the hunk
    before it). places: where the whole pre-image stands, for those. expected: the stated
    index, less what was found of earlier hunks. trim: context that fuzz dropped.
    """

    status: str
    index: int
    offset: int = 0
    why: str = ""
    places: tuple[int, ...] = ()
    expected: int = 0
    trim: Trimmed | None = None


def stated(hunk: Hunk) -> int:
    """The index that a hunk's header states: an empty side names the line before."""
    return max(hunk.old_start - 1, 0) if hunk.old_count else hunk.old_start


def at_start(hunk: Hunk) -> bool:
    """Whether the hunk must stand at the start of the file."""
    return hunk.old_start <= 1


def at_end(hunk: Hunk) -> bool:
    """Whether the hunk must stand at the end of the file."""
    return not hunk.tags.endswith(b" ")


_FEW_HUNKS = 8
"""So many are put in one by one, each moving the lines behind it: faster than a new list."""


def holds(lines: Lines, hunks: Sequence[Hunk], starts: Sequence[int] | None = None) -> bool:
    """Whether every hunk stands exactly where it states (or at `starts`). The fast way."""
    size, free = len(lines), 0
    for i, hunk in enumerate(hunks):
        at = starts[i] if starts is not None else stated(hunk)
        old = hunk.old
        stop = at + len(old)
        if at < free or stop > size or lines[at:stop] != list(old):
            return False
        if stop != size and at_end(hunk):
            return False
        free = stop
    return True


def splice(lines: Lines, hunks: Sequence[Hunk], spots: Sequence[Spot]) -> Lines:
    """The lines after every hunk is put at its spot."""
    if all(spot.trim is None for spot in spots):
        return splice_at(lines, hunks, [spot.index for spot in spots])
    out: list[bytes] = []
    free = 0
    for hunk, spot in zip(hunks, spots, strict=True):
        trim = spot.trim or Trimmed(0, 0, 0)
        at, stop = spot.index + trim.lead, spot.index + len(hunk.old) - trim.trail
        out += lines[free:at]
        out += hunk.new[trim.lead : len(hunk.new) - trim.trail]
        free = stop
    out += lines[free:]
    return out


def splice_at(lines: Lines, hunks: Sequence[Hunk], starts: Sequence[int]) -> Lines:
    """The lines after every hunk is put at its start. Linear in the file; where that is kept in
    chunks, in the chunks that change."""
    if isinstance(lines, Chunks):
        placed = zip(hunks, starts, strict=True)
        return lines.replaced((at, at + hunk.old_count, hunk.new) for hunk, at in placed)
    if len(hunks) <= _FEW_HUNKS:
        whole = list(lines)
        for hunk, at in zip(reversed(hunks), reversed(starts), strict=True):
            whole[at : at + hunk.old_count] = hunk.new
        return whole
    out: list[bytes] = []
    free = 0
    for hunk, at in zip(hunks, starts, strict=True):
        out += lines[free:at]
        out += hunk.new
        free = at + hunk.old_count
    out += lines[free:]
    return out


def place_hunks(
    text: Text,
    path: str,
    hunks: Sequence[Hunk],
    starts: Sequence[int],
    rule: Rule,
    *,
    detect: bool = True,
) -> list[Spot]:
    """A spot for each hunk. starts: the index each one states.

    detect: whether a hunk whose result stands there already is told apart (not for -R, where
    the result is what the tree was before).
    """
    text.expect(side for hunk in hunks for side in (hunk.old, hunk.new))
    placer = _Placer(text, path, rule, detect)
    spots = [placer.place(hunk, start) for hunk, start in zip(hunks, starts, strict=True)]
    return spots if rule.exact else _doubted(text, path, hunks, spots, rule)


class _Placer:
    """Places hunks one after the other, carrying what the earlier ones tell of the file."""

    def __init__(self, text: Text, path: str, rule: Rule, detect: bool) -> None:
        self.text, self.path, self.rule, self.detect = text, path, rule, detect
        self.free = 0  # first index that no earlier hunk has taken
        self.carry = 0  # offset of the last hunk that was found
        self.shift = 0  # net lines of earlier hunks that are there already

    def place(self, hunk: Hunk, start: int) -> Spot:
        expected = start + self.shift
        spot = self.exact(hunk, expected) if self.rule.exact else self.loose(hunk, expected)
        spot = replace(spot, expected=expected)
        if spot.status != FAILS:
            self.carry = spot.index - expected
            there = spot.status == THERE
            self.free = spot.index + len(hunk.new if there else hunk.old)
            self.shift += hunk.net if there else 0
        return spot

    def exact(self, hunk: Hunk, expected: int) -> Spot:
        if self.fits(hunk, expected, anchored=False):
            return Spot(HOLDS, expected)
        if self.is_there(hunk, expected):
            return Spot(THERE, expected)
        found = self.text.places(hunk.old)
        if not found and self.detect:
            there = self.text.places(hunk.new)
            if len(there) == 1:
                return Spot(THERE, there[0], there[0] - expected)
        if found and not any(self.anchored(hunk, at) for at in found):
            why = "start" if at_start(hunk) and found[0] else "end"
        else:
            why = "" if not found else "offset" if len(found) == 1 else "ambiguous"
        return Spot(FAILS, expected, why=why, places=tuple(found))

    def loose(self, hunk: Hunk, expected: int) -> Spot:
        moved = expected + self.carry
        here = self.fits(hunk, expected)
        if here and (not self.carry or not self.fits(hunk, moved)):
            return Spot(HOLDS, expected)
        found = self.text.places(hunk.old)
        for at in found:
            if at >= self.free and (self.path, at + 1) in self.rule.accept:
                return Spot(HOLDS, at, at - expected)
        if here:  # and where the hunk before it moved to, as well
            return Spot(FAILS, expected, why="ambiguous", places=tuple(found))
        for at in (moved, expected):
            if self.is_there(hunk, at):
                return Spot(THERE, at, at - expected)
        fitting = [at for at in found if self.anchored(hunk, at)]
        if len(fitting) == 1:
            return self.alone(hunk, fitting[0], expected, moved)
        if fitting:
            return Spot(FAILS, expected, why="ambiguous", places=tuple(fitting))
        there = self.text.places(hunk.new) if self.detect else []
        if len(there) == 1 and there[0] >= self.free:
            return Spot(THERE, there[0], there[0] - expected)
        fuzzy = self.fuzzy(hunk, expected, moved)
        if fuzzy:
            return fuzzy
        if found:
            why = "start" if at_start(hunk) else "end"
            return Spot(FAILS, expected, why=why, places=tuple(found))
        return Spot(FAILS, expected)

    def alone(self, hunk: Hunk, at: int, expected: int, moved: int) -> Spot:
        """The pre-image stands at one place only: is it the one that was meant?"""
        if at < self.free:
            return Spot(FAILS, expected, why="order", places=(at,))
        # Where the hunk before it moved by as much, the stated place has nothing more to say.
        for stated_place in () if at == moved else dict.fromkeys((expected, moved)):
            if near_miss(self.text.lines, hunk.old, stated_place, at):
                return Spot(FAILS, stated_place, why="near-miss", places=(stated_place, at))
        return Spot(HOLDS, at, at - expected)

    def fuzzy(self, hunk: Hunk, expected: int, moved: int) -> Spot | None:
        """A place with as much fuzz as the patch allows by name, the least first."""
        for trim in trims(hunk, self.rule.allow.fuzz):
            block = trim.of(hunk.old)
            found = [at - trim.lead for at in self.text.places(block)]
            found = [at for at in found if at + trim.lead >= self.free]
            near = [at for at in (moved, expected) if at in found]
            if near or len(found) == 1:
                at = (near or found)[0]
                return Spot(HOLDS, at, at - expected, trim=trim)
        return None

    def fits(self, hunk: Hunk, at: int, anchored: bool = True) -> bool:
        if at < self.free or not self.text.has(hunk.old, at):
            return False
        if anchored:
            return self.anchored(hunk, at)
        return not at_end(hunk) or at + len(hunk.old) == len(self.text.lines)

    def anchored(self, hunk: Hunk, at: int) -> bool:
        if at and at_start(hunk):
            return False
        return not at_end(hunk) or at + len(hunk.old) == len(self.text.lines)

    def is_there(self, hunk: Hunk, at: int) -> bool:
        if not hunk.new:  # it empties the file
            return self.detect and not self.text.lines and at_start(hunk) and at_end(hunk)
        return self.detect and at >= self.free and self.text.has(hunk.new, at)


def _doubted(
    text: Text, path: str, hunks: Sequence[Hunk], spots: list[Spot], rule: Rule
) -> list[Spot]:
    """A hunk at its stated line is doubted where its neighbour moved and it stands there, too."""
    out = list(spots)
    for i, spot in enumerate(spots):
        if spot.status != HOLDS or spot.offset or (path, spot.index + 1) in rule.accept:
            continue
        for j in (i - 1, i + 1):
            if not 0 <= j < len(spots) or spots[j].status != HOLDS or not spots[j].offset:
                continue
            other = spot.index + spots[j].offset
            if text.has(hunks[i].old, other):
                both = tuple(sorted((spot.index, other)))
                out[i] = replace(spot, status=FAILS, why="ambiguous", places=both)
    return out
