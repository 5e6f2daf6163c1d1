"""How a block of lines differs from what stands at a place, side by side and made visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from patchkit.engine.content import lf
from patchkit.engine.line_index import fold
from patchkit.engine.quote import show_line

SHOWN = 4
"""Differing lines that are shown before it is said how many more there are."""

ALIGNED = 200
"""Blocks up to this many lines are aligned before they are compared."""

Pair = tuple[int, "bytes | None", "bytes | None"]
"""(1-based line, expected, found); None for a line that one side lacks."""


@dataclass(frozen=True)
class Difference:
    """How a block differs from a place: lines for a message, and the first differing pair.

    kind: what all differences have in common: "white space", "white space and more lines",
    "line ends" (CRLF against LF), "last line end"; "" where it is what the lines say.
    """

    lines: tuple[str, ...]
    expected: str
    found: str
    kind: str


def difference(block: Sequence[bytes], lines: Sequence[bytes], at: int) -> Difference:
    """Compare a block with the lines at `at`: which differ, shown side by side. Lines that differ
    in their line ends only are counted, where others differ in more."""
    pairs, ends = _ends_aside(_pairs(block, lines, at))
    shown: list[str] = []
    for number, want, have in pairs[:SHOWN]:
        shown.append(f"line {number}:" if number else "in the patch:")
        shown.append(f"  expected: {_show(want, have)}")
        shown.append(f"  found:    {_show(have, want)}")
    if len(pairs) > SHOWN:
        more = len(pairs) - SHOWN
        shown.append(f"and {more} more lines differ" if more > 1 else "and one more line differs")
    if ends:
        lines_differ = "lines differ" if ends > 1 else "line differs"
        shown.append(f"and {ends} more {lines_differ} in the line end only")
    if not pairs:
        return Difference((), "its lines", "the same lines", "")
    both = [pair for pair in pairs if pair[1] is not None and pair[2] is not None]
    _, want, have = (both or pairs)[0]
    return Difference(tuple(shown), _show(want, have), _show(have, want), _kind(pairs))


def _ends_aside(pairs: list[Pair]) -> tuple[list[Pair], int]:
    """The pairs that differ in more than CRLF against LF, seen with LF, and how many do not; all
    of them and 0 where no line differs in more, or none only in that."""
    more = [pair for pair in pairs if not _only_ends(pair)]
    if not more or len(more) == len(pairs):
        return pairs, 0
    seen: list[Pair] = [
        (number, want and lf(want), have and lf(have)) for number, want, have in more
    ]
    return seen, len(pairs) - len(more)


def _only_ends(pair: Pair) -> bool:
    _, want, have = pair
    return want is not None and have is not None and lf(want) == lf(have)


def _pairs(block: Sequence[bytes], lines: Sequence[bytes], at: int) -> list[Pair]:
    """(1-based line, expected, found) of each difference; None for a line that is not there."""
    size = len(block)
    window = list(lines[at : at + size])
    if size > ALIGNED or sum(map(len, window)) > 1 << 16:
        window += [b""] * (size - len(window))
        return [
            (at + i + 1, want, have or None)
            for i, (want, have) in enumerate(zip(block, window, strict=True))
            if want != have
        ]
    low = max(at - 3, 0)
    room = list(lines[low : at + size + 3])
    keys = [[fold(line) for line in some] for some in (block, room)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    # Lines above and below the hunk are none of its business.
    while blocks and blocks[-1][0] == "insert":
        blocks.pop()
    while blocks and blocks[0][0] == "insert":
        blocks.pop(0)
    pairs: list[Pair] = []
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                if block[i] != room[j]:
                    pairs.append((low + j + 1, block[i], room[j]))
            continue
        if i2 == size:
            j2 = min(j2, j1 + (i2 - i1))
        elif i1 == 0:
            j1 = max(j1, j2 - (i2 - i1))
        for k in range(max(i2 - i1, j2 - j1)):
            want = block[i1 + k] if i1 + k < i2 else None
            have = room[j1 + k] if j1 + k < j2 else None
            pairs.append((low + j1 + k + 1, want, have))
    return pairs


def _kind(pairs: Sequence[Pair]) -> str:
    """What all the differences have in common, lines left aside that only the file has."""
    if any(have is None for _, _, have in pairs):
        return ""
    both = [(w, h) for _, w, h in pairs if w is not None and h is not None]
    if not both:
        return ""
    if all(w.rstrip(b"\r\n") == h.rstrip(b"\r\n") for w, h in both):
        ended = all(w.endswith(b"\n") == h.endswith(b"\n") for w, h in both)
        if len(both) == len(pairs):
            return "line ends" if ended else "last line end"
    if not all(fold(w) == fold(h) for w, h in both):
        return ""
    return "white space" if len(both) == len(pairs) else "white space and more lines"


def _show(line: bytes | None, other: bytes | None) -> str:
    """One side of a difference, with what is invisible made visible where it matters."""
    if line is None:
        return "(no such line)"
    shown = show_line(line)
    if not line.endswith(b"\n"):
        shown += " (without a line end)"
    elif other is not None and fold(line) == fold(other) and line != other:
        if not other.endswith(b"\n"):
            return shown + " (with a line end)"
        indents = [_indent(some) for some in (line, other)]
        if None not in indents and indents[0] != indents[1]:
            shown += f" (indented by {indents[0]} spaces)"
        elif line.rstrip() != line.rstrip(b"\n"):
            shown += " (white space at its end)"
    return shown


def _indent(line: bytes) -> int | None:
    """Spaces that a line begins with; None where other white space is among them."""
    rest = line.lstrip(b" ")
    odd = rest.startswith((b"\t", b"\xc2\xa0", b"\v", b"\f"))
    return None if odd else len(line) - len(rest)


def line_end(lines: Sequence[bytes]) -> str:
    """ "CRLF", "LF", or "CRLF and LF mixed"."""
    ended = [line for line in lines if line.endswith(b"\n")]
    crlf = sum(1 for line in ended if line.endswith(b"\r\n"))
    if not crlf:
        return "LF"
    return "CRLF" if crlf == len(ended) else "CRLF and LF mixed"
