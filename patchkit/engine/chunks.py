"""The lines of a large file in chunks, which the versions of it share.

A series may change one large file thousands of times. A list of all its lines for each version
would take memory and time for lines that nobody touched; here a version has chunks of its own only
where it differs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

SIZE = 256
"""Lines of a chunk when a file is cut up; one that is edited may have up to twice as many."""
LARGE = 8192
"""A file with more lines than this is kept in chunks."""


class Chunks(Sequence[bytes]):
    """Lines, as a list of them would be read. Never changed: an edit gives another one."""

    __slots__ = ("_starts", "parts")

    def __init__(self, parts: list[list[bytes]]) -> None:
        """parts: the chunks in order, none of them empty."""
        self.parts = parts
        self._starts = array("I", accumulate(map(len, parts), initial=0))

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> Chunks:
        """The lines of a list."""
        return cls([list(lines[at : at + SIZE]) for at in range(0, len(lines), SIZE)])

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.parts)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        if isinstance(at, slice):
            first, last, step = at.indices(len(self))
            if step != 1:
                return list(self)[at]
            return list(chain.from_iterable(self._between(first, last)))
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(at)
        part = bisect_right(self._starts, at) - 1
        return self.parts[part][at - self._starts[part]]

    def replaced(self, edits: Iterable[tuple[int, int, Sequence[bytes]]]) -> Chunks:
        """The lines with others in their place. edits: (first, last, lines that come for those
        from first up to, not with, last), ascending, none reaching into the next."""
        out = _Growing()
        done = 0
        for first, last, lines in edits:
            out.take(self._between(done, first))
            out.add(lines)
            done = last
        out.take(self._between(done, len(self)))
        return Chunks(out.parts)

    def _between(self, first: int, last: int) -> Iterator[list[bytes]]:
        """The lines from first up to, not with, last: whole chunks as they are, others cut."""
        part = bisect_right(self._starts, first) - 1
        while first < last:
            start, stop = self._starts[part], self._starts[part + 1]
            whole = first == start and stop <= last
            lines = self.parts[part]
            yield lines if whole else lines[first - start : last - start]
            first, part = stop, part + 1


class _Growing:
    """Chunks while they are put together: those of the old version stay as they are."""

    def __init__(self) -> None:
        self.parts: list[list[bytes]] = []
        self._own = False  # whether the last chunk is not one of the old version

    def take(self, parts: Iterable[list[bytes]]) -> None:
        for part in parts:
            if len(part) >= SIZE // 2:
                self.parts.append(part)
                self._own = False
            else:
                self.add(part)

    def add(self, lines: Sequence[bytes]) -> None:
        if self._own and len(self.parts[-1]) + len(lines) <= 2 * SIZE:
            self.parts[-1] += lines
            return
        for at in range(0, len(lines), SIZE):
            self.parts.append(list(lines[at : at + SIZE]))
            self._own = True


Lines = list[bytes] | Chunks
"""The lines of a file: a slice of either is a list."""
