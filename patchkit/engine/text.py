"""Bytes as lines: only b"\\n" ends a line; form feeds, lone returns and U+2028 are content."""

from __future__ import annotations

import io
from array import array
from collections.abc import Sequence
from itertools import accumulate

from patchkit.engine.chunks import Chunks

_STRETCH = 1 << 14


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data`, each with its line end; the last one may lack it."""
    return io.BytesIO(data).readlines()


def join_lines(lines: Sequence[bytes]) -> bytes:
    """The lines as one. `bytes.join` takes 80 bytes more for each while it works, so many are
    joined in stretches."""
    if len(lines) <= _STRETCH:
        return b"".join(lines)
    whole = io.BytesIO()
    if isinstance(lines, Chunks):
        for part in lines.parts:
            whole.write(b"".join(part))
        return whole.getvalue()
    for at in range(0, len(lines), _STRETCH):
        whole.write(b"".join(lines[at : at + _STRETCH]))
    return whole.getvalue()


class Whole:
    """A file's bytes, of which some lines are asked for now and then: where they begin is found
    out at the first time, and the lines themselves are not kept."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._ends: array[int] | None = None

    def between(self, first: int, last: int) -> bytes:
        """The bytes of the lines `first` up to, not with, `last` (0-based)."""
        if first >= last:
            return b""
        if self._ends is None:
            self._ends = array("Q", accumulate(map(len, io.BytesIO(self._data))))
        start = self._ends[first - 1] if first else 0
        return self._data[start : self._ends[last - 1]]
