"""Three-way merge of one file, line by line, as `git merge-file --diff3` does it.

Two changes that touch or overlap in the base are a conflict unless both sides made the very same
change. That is stricter than merging as much as can be: a change right beside another is looked
at by a person. Both differences are taken as git takes them (`diff_lines` without the rule for
readers), so a clean merge has git's bytes, and git's conflicts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.engine.diff import Range, diff_lines
from patchkit.engine.text import split_lines

MARKER = 7
"""Characters of a conflict marker, as everywhere."""


@dataclass(frozen=True)
class Region:
    """One conflict: which lines of each version stand against each other.

    base, ours, theirs: 0-based line ranges (from, to), ends excluded. line: 1-based line of the
    conflict's first marker in the merged data.
    """

    base: tuple[int, int]
    ours: tuple[int, int]
    theirs: tuple[int, int]
    line: int = 0


@dataclass(frozen=True)
class Merged:
    """The result of a merge. data: the merged bytes; with conflicts it holds diff3 markers."""

    data: bytes
    conflicts: tuple[Region, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing conflicts."""
        return not self.conflicts


@dataclass
class _Part:
    """A stretch where some side differs from the base. side: 1 ours, 2 theirs, 0 a conflict."""

    side: int
    base: tuple[int, int]
    ours: tuple[int, int]
    theirs: tuple[int, int]


def merge3(
    base: bytes,
    ours: bytes,
    theirs: bytes,
    labels: tuple[str, str, str] = ("ours", "base", "theirs"),
) -> Merged:
    """Merge the changes from `base` to `ours` and to `theirs`.

    labels: names of ours, base and theirs at the conflict markers. Binary contents merge only
    where at most one side changed; the caller asks `is_binary` first.
    """
    if ours == theirs or theirs == base:
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    old, mine, other = split_lines(base), split_lines(ours), split_lines(theirs)
    parts = _parts(old, mine, other)
    return _write(parts, old, mine, other, labels)


def is_binary(data: bytes) -> bool:
    """Whether git takes the content for binary: a NUL in the first 8000 bytes."""
    return b"\0" in data[:8000]


def _parts(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[_Part]:
    """The parts in order, those that touch each other joined into conflicts."""
    mine = diff_lines(base, ours, by_indent=False)
    other = diff_lines(base, theirs, by_indent=False)
    parts: list[_Part] = []
    a = b = 0
    # Lines that each side has gained so far: where an unchanged base line stands in it.
    mine_net = other_net = 0
    past = (len(base) + 2,) * 4  # where a side has no change left
    while a < len(mine) or b < len(other):
        one = mine[a] if a < len(mine) else past
        two = other[b] if b < len(other) else past
        if one[1] < two[0]:
            _add(parts, _Part(1, one[:2], one[2:], (one[0] + other_net, one[1] + other_net)))
            mine_net += _net(one)
            a += 1
        elif two[1] < one[0]:
            _add(parts, _Part(2, two[:2], (two[0] + mine_net, two[1] + mine_net), two[2:]))
            other_net += _net(two)
            b += 1
        else:
            if not _same(one, two, ours, theirs):
                start, end = min(one[0], two[0]), max(one[1], two[1])
                _add(
                    parts,
                    _Part(
                        0, (start, end), _stretched(one, start, end), _stretched(two, start, end)
                    ),
                )
            # The change that ends first is done with; the longer one may meet the next one too.
            if one[1] <= two[1]:
                mine_net += _net(one)
                a += 1
            if two[1] <= one[1]:
                other_net += _net(two)
                b += 1
    return parts


def _net(change: Range) -> int:
    return (change[3] - change[2]) - (change[1] - change[0])


def _stretched(change: Range, start: int, end: int) -> tuple[int, int]:
    """The side's lines that answer to the base lines from `start` to `end`."""
    return change[2] - (change[0] - start), change[3] + (end - change[1])


def _same(one: Range, two: Range, ours: Sequence[bytes], theirs: Sequence[bytes]) -> bool:
    return one[:2] == two[:2] and ours[one[2] : one[3]] == theirs[two[2] : two[3]]


def _add(parts: list[_Part], new: _Part) -> None:
    """Append, joining with the last part where they touch in one of the sides."""
    last = parts[-1] if parts else None
    if last is None or (new.ours[0] > last.ours[1] and new.theirs[0] > last.theirs[1]):
        parts.append(new)
        return
    if new.side != last.side:
        last.side = 0
    last.base = (last.base[0], new.base[1])
    last.ours = (last.ours[0], new.ours[1])
    last.theirs = (last.theirs[0], new.theirs[1])


def _write(
    parts: Sequence[_Part],
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    labels: tuple[str, str, str],
) -> Merged:
    out: list[bytes] = []
    regions = []
    at = lines = 0
    for part in parts:
        out += ours[at : part.ours[0]]
        at = part.ours[1]
        if part.side == 1:
            out += ours[part.ours[0] : part.ours[1]]
        elif part.side == 2:
            out += theirs[part.theirs[0] : part.theirs[1]]
        else:
            lines = len(out) + 1
            regions.append(Region(part.base, part.ours, part.theirs, lines))
            out += _marked(part, base, ours, theirs, labels)
    out += ours[at:]
    return Merged(b"".join(out), tuple(regions))


def _marked(
    part: _Part,
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    labels: tuple[str, str, str],
) -> list[bytes]:
    """The conflict with its markers; a side whose last line lacks its end gets one."""
    end = _line_end(part, base, ours, theirs)
    out: list[bytes] = []
    for sign, label, lines, (start, stop) in (
        (b"<", labels[0], ours, part.ours),
        (b"|", labels[1], base, part.base),
        (b"=", "", theirs, part.theirs),
    ):
        out.append(sign * MARKER + _label(label) + end)
        out += lines[start:stop]
        if out[-1][-1:] != b"\n":
            out[-1] += end
    out.append(b">" * MARKER + _label(labels[2]) + end)
    return out


def _label(label: str) -> bytes:
    return f" {label}".encode("utf-8", "surrogateescape") if label else b""


def _line_end(
    part: _Part, base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> bytes:
    """The line end for markers: CRLF where the lines before the conflict and the base have it."""
    found = None
    for lines, at in ((ours, part.ours[0] - 1), (theirs, part.theirs[0] - 1), (base, 0)):
        found = _ends_in_crlf(lines, max(at, 0))
        if found is False:
            return b"\n"
    return b"\r\n" if found else b"\n"


def _ends_in_crlf(lines: Sequence[bytes], at: int) -> bool | None:
    """Whether line `at` (the one before, where it has no line end) does; None: nothing says."""
    if not lines:
        return None
    if not lines[at].endswith(b"\n"):
        if at == 0:
            return None
        at -= 1
    return lines[at].endswith(b"\r\n")
