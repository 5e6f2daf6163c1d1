"""Which lines differ: Myers' linear-space search, with the choices that git's diff makes.

E. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), section 4b: search from both
ends until the paths meet, split there, go on in both halves. The result is a smallest edit script
up to the limits below. Where several scripts are equally small, and where the search is cut short,
the choices are those that git is seen to make, so that `git diff` and `git merge-file` can judge:
the tests measure it. One choice of git is left out: above 65,000 lines that differ it may also
settle at a long run of equal lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

LEAST_COST = 256
"""Edits after which a search may settle for less than the smallest script."""
WINDOW = 100
"""Lines looked at on each side of a line that stands too often to be of use."""
TOO_OFTEN = 1024

Box = tuple[int, int, int, int, bool]
"""old from, old to, new from, new to, whether only a smallest script will do."""


def changed_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[bytearray, bytearray]:
    """For each line of both sides 1 where it is no part of the common sequence, else 0."""
    size_old, size_new = len(old), len(new)
    gone, come = bytearray(size_old), bytearray(size_new)
    head, end_old, end_new = common_ends(old, new)
    if head in (end_old, end_new):
        gone[head:end_old] = b"\1" * (end_old - head)
        come[head:end_new] = b"\1" * (end_new - head)
        return gone, come
    in_old, in_new = Counter(old), Counter(new)
    keep_old = _useful(old, head, end_old, in_new, gone)
    keep_new = _useful(new, head, end_new, in_old, come)
    numbers: dict[bytes, int] = {}
    xs = [numbers.setdefault(old[i], len(numbers)) for i in keep_old]
    ys = [numbers.setdefault(new[j], len(numbers)) for j in keep_new]
    search = _Search(xs, ys)
    todo: list[Box] = [(0, len(xs), 0, len(ys), False)]
    while todo:
        x, x_end, y, y_end, smallest = todo.pop()
        while x < x_end and y < y_end and xs[x] == ys[y]:
            x += 1
            y += 1
        while x < x_end and y < y_end and xs[x_end - 1] == ys[y_end - 1]:
            x_end -= 1
            y_end -= 1
        if x == x_end:
            for j in range(y, y_end):
                come[keep_new[j]] = 1
        elif y == y_end:
            for i in range(x, x_end):
                gone[keep_old[i]] = 1
        else:
            x_cut, y_cut, low, high = search.meet(x, x_end, y, y_end, smallest)
            todo.append((x, x_cut, y, y_cut, low))
            todo.append((x_cut, x_end, y_cut, y_end, high))
    return gone, come


def common_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int, int]:
    """Length of the common head, and where the common tail begins in both."""
    end_old, end_new = len(old), len(new)
    shorter = min(end_old, end_new)
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    while end_old > head and end_new > head and old[end_old - 1] == new[end_new - 1]:
        end_old -= 1
        end_new -= 1
    return head, end_old, end_new


def root_bound(number: int) -> int:
    """A power of two near the square root: 2 for 1 to 3, 4 for 4 to 15, …, 1 for 0."""
    return 1 << ((number.bit_length() + 1) // 2)


def _useful(
    lines: Sequence[bytes], start: int, end: int, other: Counter[bytes], changed: bytearray
) -> list[int]:
    """The lines worth to be searched; those that the other side lacks are marked as changed.

    A line that stands very often on the other side (a blank one) and has hardly anything but
    missing lines around it is marked too: it would only hold unrelated parts together.
    """
    often = min(root_bound(len(lines)), TOO_OFTEN)
    kinds = bytearray()
    for index in range(start, end):
        count = other[lines[index]]
        kinds.append(0 if not count else 2 if count >= often else 1)
    kept = []
    for at, kind in enumerate(kinds):
        if kind == 1 or (kind == 2 and not _lost(kinds, at)):
            kept.append(start + at)
        else:
            changed[start + at] = 1
    return kept


def _lost(kinds: bytearray, at: int) -> bool:
    """Whether a line that stands too often is surrounded by lines that the other side lacks."""
    missing = often = 0
    for step, stop in ((-1, max(at - WINDOW, 0)), (1, min(at + WINDOW, len(kinds) - 1))):
        found = 0
        for index in range(at + step, stop + step, step):
            kind = kinds[index]
            if kind == 1:
                break
            if kind == 0:
                found += 1
            else:
                often += 1
        if not found:
            return False
        missing += found
    often += 2  # the line itself, once for each side
    return often * 4 < often + missing


class _Search:
    """The search for the point where the paths from both ends of a box meet.

    A diagonal is x - y. `ahead[d]` is the furthest x that a path from the start reaches on d,
    `back[d]` the lowest x that one from the end does. Negative d index from the end of the list.
    """

    def __init__(self, xs: list[int], ys: list[int]) -> None:
        self.xs = xs
        self.ys = ys
        diagonals = len(xs) + len(ys) + 3
        self.ahead = [0] * (diagonals + 1)
        self.back = [0] * (diagonals + 1)
        self.most = max(root_bound(diagonals), LEAST_COST)

    def meet(
        self, x0: int, x1: int, y0: int, y1: int, smallest: bool
    ) -> tuple[int, int, bool, bool]:
        """The cut (x, y), and for both halves whether only a smallest script will do."""
        xs, ys, ahead, back = self.xs, self.ys, self.ahead, self.back
        lowest, highest = x0 - y1, x1 - y0
        start, goal = x0 - y0, x1 - y1
        odd = (start - goal) & 1
        a_low = a_high = start
        b_low = b_high = goal
        ahead[start], back[goal] = x0, x1
        beyond = x1 + y1 + 1
        cost = 0
        while True:
            cost += 1
            if a_low > lowest:
                a_low -= 1
                ahead[a_low - 1] = -1
            else:
                a_low += 1
            if a_high < highest:
                a_high += 1
                ahead[a_high + 1] = -1
            else:
                a_high -= 1
            for d in range(a_high, a_low - 1, -2):
                down, right = ahead[d - 1], ahead[d + 1]
                x = down + 1 if down >= right else right
                y = x - d
                while x < x1 and y < y1 and xs[x] == ys[y]:
                    x += 1
                    y += 1
                ahead[d] = x
                if odd and b_low <= d <= b_high and back[d] <= x:
                    return x, y, True, True
            if b_low > lowest:
                b_low -= 1
                back[b_low - 1] = beyond
            else:
                b_low += 1
            if b_high < highest:
                b_high += 1
                back[b_high + 1] = beyond
            else:
                b_high -= 1
            for d in range(b_high, b_low - 1, -2):
                up, left = back[d - 1], back[d + 1]
                x = up if up < left else left - 1
                y = x - d
                while x > x0 and y > y0 and xs[x - 1] == ys[y - 1]:
                    x -= 1
                    y -= 1
                back[d] = x
                if not odd and a_low <= d <= a_high and x <= ahead[d]:
                    return x, y, True, True
            if cost >= self.most and not smallest:
                ends = range(a_high, a_low - 1, -2), range(b_high, b_low - 1, -2)
                return self._furthest((x0, x1, y0, y1), *ends)

    def _furthest(
        self, box: tuple[int, int, int, int], ahead: range, back: range
    ) -> tuple[int, int, bool, bool]:
        """The point that is furthest from its end, where the search has cost enough."""
        x0, x1, y0, y1 = box
        far, far_x = -1, -1
        for d in ahead:
            x = min(self.ahead[d], x1, y1 + d)
            if 2 * x - d > far:
                far, far_x = 2 * x - d, x
        near, near_x = x1 + y1 + 1, x1
        for d in back:
            x = max(self.back[d], x0, y0 + d)
            if 2 * x - d < near:
                near, near_x = 2 * x - d, x
        if x1 + y1 - near < far - (x0 + y0):
            return far_x, far - far_x, True, False
        return near_x, near - near_x, False, True
