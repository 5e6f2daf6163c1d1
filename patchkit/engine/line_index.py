"""Where in a file a line stands, a line up to its white space, or a run of lines.

For most files all lines are indexed at once. That takes some 300 bytes a line, so of a file with
very many only those lines are looked for that are asked about: in one pass for all the lines of
which it was said before that they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice

from patchkit.engine.chunks import Lines

WHOLE = 100_000
"""A file with so many lines is indexed as a whole."""
PASSES = 16
"""So many times a larger one is read for what is only explanation."""
RUN = 3
"""So many lines together tell a place where each of them is common."""

Keys = Callable[[Iterable[bytes]], Iterable[Hashable]]


def fold(line: bytes) -> bytes:
    """A line with its white space (and U+00A0) reduced: equal for lines that differ only there."""
    return b" ".join(line.replace(b"\xc2\xa0", b" ").split())


def plain(lines: Iterable[bytes]) -> Iterable[Hashable]:
    """Each line as it is."""
    return lines


def folded(lines: Iterable[bytes]) -> Iterable[Hashable]:
    """Each line up to its white space; None for a blank one, of which no place is kept."""
    return (fold(line) or None for line in lines)


def runs(lines: Iterable[bytes]) -> Iterable[Hashable]:
    """Each RUN lines, where they begin; by their hash, for their size."""
    whole = lines if isinstance(lines, Sequence) else tuple(lines)
    return map(hash, zip(*(islice(whole, i, None) for i in range(RUN)), strict=False))


class LineIndex:
    """Key of a line (or of what begins there) -> the indexes where it stands, ascending."""

    def __init__(
        self, lines: Lines, keys: Keys, expected: Sequence[Sequence[bytes]], passes: int = 0
    ) -> None:
        """keys: one of the functions above. expected: blocks that may be asked about; it may grow.
        passes: how often a file above WHOLE is read at most, 0 for as often as is needed."""
        self._lines, self._keys, self._expected = lines, keys, expected
        self._found: dict[Hashable, list[int]] = {}
        self._left = passes or -1
        self._taken = 0  # blocks of `expected` that were looked for
        if len(lines) <= WHOLE:
            self._found = _places(keys(lines), None)
            self._left = 0

    def of(self, block: Sequence[bytes]) -> list[Sequence[int]]:
        """The places of each key of `block`."""
        keys = list(self._keys(block))
        if self._left and not self._found.keys() >= set(keys):
            wanted = {*keys, *(k for b in self._expected[self._taken :] for k in self._keys(b))}
            self._taken = len(self._expected)
            wanted -= self._found.keys()
            self._found |= _places(self._keys(self._lines), dict.fromkeys(wanted))
            self._left -= 1
        return [self._found.get(key, ()) for key in keys]


def _places(
    keys: Iterable[Hashable], wanted: Mapping[Hashable, None] | None
) -> dict[Hashable, list[int]]:
    """The places of every key, or of those that are wanted: none of these is left out."""
    found: dict[Hashable, list[int]] = {}
    if wanted is None:
        for at, key in enumerate(keys):
            if key in found:
                found[key].append(at)
            elif key is not None:
                found[key] = [at]
        return found
    found = {key: [] for key in wanted}
    for at, key in enumerate(keys):
        if key in wanted and key is not None:
            found[key].append(at)
    return found
