"""Where a group of changed lines stands, when it could stand in several places.

A group of added or removed lines can slide over equal lines. As git does, it is put beside a
change of the other side where it can be; else, for people, at the place whose ends are the most
natural borders by indentation and blank lines (git's diff.indentHeuristic; the weights below are
those its authors found by grading thousands of real diffs by hand); else as low as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

FARTHEST = 100
"""Lines that the indentation rule lets a group slide."""
DEEPEST = 200
"""Columns of indentation that are told apart."""
BLANKS = 20
"""Blank lines in a row that are looked over."""

START_OF_FILE, END_OF_FILE = 1, 21
ANY_BLANK, BLANK_AFTER = -30, 6
DEEPER, DEEPER_AFTER_BLANK = -4, 10
OUT_AND_IN, OUT_AND_IN_AFTER_BLANK = 24, 17
OUT, OUT_AFTER_BLANK = 23, 17
INDENT = 60


def slide(lines: Sequence[bytes], changed: bytearray, other: bytearray, *, by_indent: bool) -> None:
    """Move the groups of `changed` (flags of `lines`) in place; `other` are the other side's.

    A gap is the space before a common line; both sides have the same number of them.
    """
    beside = _gaps(other)
    size = len(lines)
    at = gap = 0
    while at < size:
        if not changed[at]:
            # The next changed line, without a step a line.
            next_at = changed.find(1, at)
            if next_at < 0:
                return
            gap += next_at - at
            at = next_at
        group = _Group(lines, changed, at, gap)
        wanted = group.settle(beside)
        if wanted is None and by_indent and group.end > group.earliest:
            wanted = group.best_end()
        while wanted is not None and group.end > wanted:
            group.up()
        at, gap = group.end, group.gap


class _Group:
    """A run of changed lines [start, end) in the gap `gap`."""

    def __init__(self, lines: Sequence[bytes], changed: bytearray, start: int, gap: int) -> None:
        self.lines = lines
        self.changed = changed
        self.start = start
        self.end = start
        self.gap = gap
        self.earliest = 0
        self._grow_down()

    def _grow_down(self) -> None:
        end = self.changed.find(0, self.end)
        self.end = len(self.changed) if end < 0 else end

    def up(self) -> bool:
        """One line up, taking in a group that is met; False where it cannot."""
        if self.start == 0 or self.lines[self.start - 1] != self.lines[self.end - 1]:
            return False
        self.start -= 1
        self.end -= 1
        self.gap -= 1
        self.changed[self.start] = 1
        self.changed[self.end] = 0
        while self.start > 0 and self.changed[self.start - 1]:
            self.start -= 1
        return True

    def down(self) -> bool:
        """One line down, taking in a group that is met; False where it cannot."""
        if self.end == len(self.lines) or self.lines[self.start] != self.lines[self.end]:
            return False
        self.changed[self.start] = 0
        self.changed[self.end] = 1
        self.start += 1
        self.end += 1
        self.gap += 1
        self._grow_down()
        return True

    def settle(self, beside: bytearray) -> int | None:
        """Slide to both ends until nothing more is taken in, and stay at the lower one.

        Returns the lowest end at which the other side has a change in the same gap.
        """
        while True:
            size = self.end - self.start
            while self.up():
                pass
            self.earliest = self.end
            found = self.end if beside[self.gap] else None
            while self.down():
                if beside[self.gap]:
                    found = self.end
            if self.end - self.start == size:
                return found

    def best_end(self) -> int:
        """The end whose two borders are the most natural; the lowest of equals."""
        size = self.end - self.start
        first = max(self.earliest, self.end - size - 1, self.end - FARTHEST)
        best, best_end = None, self.end
        for end in range(first, self.end + 1):
            below, above = border(self.lines, end), border(self.lines, end - size)
            score = (below[0] + above[0], below[1] + above[1])
            if best is None or _no_worse(score, best):
                best, best_end = score, end
        return best_end


def border(lines: Sequence[bytes], at: int) -> tuple[int, int]:
    """How natural a border before line `at` is: (indentation, penalty); less is better."""
    size = len(lines)
    here = indentation(lines[at]) if at < size else -1
    above, blanks = _next_indent(lines, at - 1, -1, -1)
    below, blanks_below = _next_indent(lines, at + 1, size, 1)
    penalty = 0
    if above == -1 and blanks == 0:
        penalty += START_OF_FILE
    if at >= size:
        penalty += END_OF_FILE
    after = 1 + blanks_below if here == -1 else 0
    blank = blanks + after
    penalty += ANY_BLANK * blank + BLANK_AFTER * after
    indent = below if here == -1 else here
    if indent != -1 and above != -1:
        if indent > above:
            penalty += DEEPER_AFTER_BLANK if blank else DEEPER
        elif indent < above:
            if below > indent:
                penalty += OUT_AND_IN_AFTER_BLANK if blank else OUT_AND_IN
            else:
                penalty += OUT_AFTER_BLANK if blank else OUT
    return indent, penalty


def indentation(line: bytes) -> int:
    """Columns before the first character that is no blank; -1 for a blank line."""
    columns = 0
    for byte in line:
        if byte == 32:
            columns += 1
        elif byte == 9:
            columns += 8 - columns % 8
        elif byte not in (10, 13):
            return columns
        if columns >= DEEPEST:
            return DEEPEST
    return -1


def _next_indent(lines: Sequence[bytes], at: int, stop: int, step: int) -> tuple[int, int]:
    blanks = 0
    for index in range(at, stop, step):
        found = indentation(lines[index])
        if found != -1:
            return found, blanks
        blanks += 1
        if blanks == BLANKS:
            return 0, blanks
    return -1, blanks


def _no_worse(score: tuple[int, int], best: tuple[int, int]) -> bool:
    deeper = (score[0] > best[0]) - (score[0] < best[0])
    return INDENT * deeper + score[1] - best[1] <= 0


def _gaps(flags: bytearray) -> bytearray:
    """For each gap of the side with these flags whether a change stands in it."""
    return bytearray(1 if run else 0 for run in bytes(flags).split(b"\0"))
