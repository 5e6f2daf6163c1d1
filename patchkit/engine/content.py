"""A file's content as lines, and what can be asked of them quickly.

Indexes are made when first asked for: a hunk that holds at its stated line needs none.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from patchkit.engine.chunks import LARGE, Chunks, Lines
from patchkit.engine.line_index import PASSES, RUN, WHOLE, LineIndex, folded, plain, runs
from patchkit.engine.model import REGULAR, File
from patchkit.engine.text import join_lines, split_lines

FEW = 64
"""Up to so many places are tried one by one; above, one substring search over the whole file."""

MANY = 1000
"""No more places than this are listed: more are ambiguous all the same."""


def lf(line: bytes) -> bytes:
    """A line with LF for CRLF: equal for lines that differ in their line ends only."""
    return line[:-2] + b"\n" if line.endswith(b"\r\n") else line


class Text:
    """Lines of one version of a file, with lazy indexes. Treated as immutable."""

    __slots__ = (
        "_data",
        "_expected",
        "_folded",
        "_found",
        "_positions",
        "_run_index",
        "_starts",
        "lines",
    )

    def __init__(self, lines: Lines) -> None:
        large = isinstance(lines, list) and len(lines) > LARGE
        self.lines: Lines = Chunks.of(lines) if large else lines
        self._positions: LineIndex | None = None
        self._run_index: LineIndex | None = None
        self._folded: LineIndex | None = None
        self._expected: list[Sequence[bytes]] = []
        self._data: bytes | None = None
        self._starts = array("Q")
        self._found: dict[bytes, list[int]] = {}

    @classmethod
    def of(cls, data: bytes) -> Text:
        """The text of a file's bytes."""
        return cls(split_lines(data))

    @property
    def joined(self) -> bool:
        """Whether the bytes are at hand."""
        return self._data is not None

    @property
    def data(self) -> bytes:
        """The bytes, joined once."""
        if self._data is None:
            self._data = join_lines(self.lines)
        return self._data

    def expect(self, blocks: Iterable[Sequence[bytes]]) -> None:
        """Say which lines may be asked about, so that a large file is read once for all of them."""
        if len(self.lines) > WHOLE:
            self._expected += blocks

    def positions(self, block: Sequence[bytes]) -> list[Sequence[int]]:
        """Every index where each line of `block` stands, ascending."""
        if self._positions is None:
            self._positions = LineIndex(self.lines, plain, self._expected)
        return self._positions.of(block)

    def folded(self, block: Sequence[bytes]) -> list[Sequence[int]]:
        """The same, white space left aside; of a blank line none. For explanations: of a file with
        very many lines, not as often as one likes."""
        if self._folded is None:
            self._folded = LineIndex(self.lines, folded, self._expected, PASSES)
        return self._folded.of(block)

    def _runs(self, block: Sequence[bytes]) -> list[Sequence[int]]:
        """Every index where each RUN lines of `block` begin: for files of common lines."""
        if self._run_index is None:
            self._run_index = LineIndex(self.lines, runs, self._expected)
        return self._run_index.of(block)

    def has(self, block: Sequence[bytes], at: int) -> bool:
        """Whether `block` stands at index `at`."""
        if at < 0 or at + len(block) > len(self.lines):
            return False
        return self.lines[at : at + len(block)] == list(block)

    def places(self, block: Sequence[bytes]) -> list[int]:
        """Every index where `block` stands, ascending (at most MANY); overlapping ones too.

        Looks at the places of the block's rarest line or run of lines, or searches the bytes
        where all are common, so that the cost is never lines times places.
        """
        if not block or len(block) > len(self.lines):
            return []
        rarest: Sequence[int] | None = None
        within = 0
        for i, found in enumerate(self.positions(block)):
            if not found:
                return []
            if rarest is None or len(found) < len(rarest):
                rarest, within = found, i
        assert rarest is not None
        if len(rarest) > FEW and len(block) >= RUN:
            for i, found in enumerate(self._runs(block)):
                if len(found) < len(rarest):
                    rarest, within = found, i
        if len(rarest) > FEW:
            return self._search(b"".join(block))
        return [at - within for at in rarest if self.has(block, at - within)]

    def _search(self, needle: bytes) -> list[int]:
        if needle in self._found:
            return self._found[needle]
        if not self._starts:
            self._starts = array("Q", accumulate(map(len, self.lines), initial=0))
        data, starts = self.data, self._starts
        found: list[int] = []
        offset = data.find(needle)
        while offset >= 0 and len(found) < MANY:
            line = bisect_left(starts, offset)
            whole = needle.endswith(b"\n") or offset + len(needle) == len(data)
            if starts[line] == offset and whole:
                found.append(line)
                line += 1
            offset = data.find(needle, starts[line]) if line < len(starts) else -1
        self._found[needle] = found
        return found


Edit = tuple[int, int, int]
"""Lines that were replaced: index of the first one, how many they were, how many they are."""

Span = tuple[int, int, bytes]
"""Bytes that were replaced: their offset, how many they were, what stands there now."""


class TextFile(File):
    """A file that the engine made: kept as lines, joined when its bytes are first asked for.

    A chain edits one file many times; joining and splitting it for each patch would cost more
    than all the rest. before, edits: the text that it was made from, and what was replaced in it
    (in order, not overlapping), where that is known.
    """

    text: Text
    before: Text | None
    edits: Iterable[Edit]

    def __init__(
        self,
        text: Text,
        mode: int = REGULAR,
        before: Text | None = None,
        edits: Iterable[Edit] = (),
    ) -> None:
        for name, value in (("text", text), ("mode", mode), ("before", before), ("edits", edits)):
            object.__setattr__(self, name, value)

    def follows(self, text: Text | None) -> bool:
        """Whether it was made from `text`, and what was replaced is known."""
        return text is not None and self.before is text

    def over(self, old: bytes) -> tuple[str, bytes, list[Span]]:
        """Id and bytes, made from `old`, the bytes of `before`; and where they differ from them.

        Costs what was replaced and not, as joining does, what the file has of lines.
        """
        assert self.before is not None
        lines, new_lines = self.before.lines, self.text.lines
        spans: list[Span] = []
        pieces: list[bytes] = []
        line = offset = moved = 0
        for at, was, now in self.edits:
            kept = sum(map(len, lines[line:at]))
            gone = sum(map(len, lines[at : at + was]))
            came = b"".join(new_lines[at + moved : at + moved + now])
            spans.append((offset + kept, gone, came))
            pieces += (old[offset : offset + kept], came)
            line, offset, moved = at + was, offset + kept + gone, moved + now - was
        pieces.append(old[offset:])
        data = b"".join(pieces)
        return self.known_as(data), data, spans

    @property
    def data(self) -> bytes:
        """The bytes, joined each time: a chain makes hundreds of versions, and keeping the bytes
        of them all would take more memory than everything else.
        """
        return self.text.data if self.text.joined else join_lines(self.text.lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, File):
            return NotImplemented
        return self.mode == other.mode and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.data, self.mode))

    def __repr__(self) -> str:
        return f"TextFile(lines={len(self.text.lines)}, mode={self.mode:o})"


def text_of(file: File) -> Text:
    """The file's text; an engine-made file has it at hand."""
    return file.text if isinstance(file, TextFile) else Text.of(file.data)
