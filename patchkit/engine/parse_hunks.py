"""One hunk: its header, its body by the header's counts, and what the counts should be.

`read_hunk` reads strictly, as `git apply` does: exactly as many lines as stated. Where that
fails, `measure` finds out how long the body really is, for the message and for --recount.

A line that was read leaves the list of lines, its content takes its place: a large patch would
else be in memory twice. Who needs it again gets it from the file (`Whole`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from patchkit.engine.model import Hunk
from patchkit.engine.text import Whole, split_lines

HUNK_HEADER = re.compile(rb"@@ -(\d{1,12})(?:,(\d{1,12}))? \+(\d{1,12})(?:,(\d{1,12}))? @@([^\n]*)")

_CONTEXT, _REMOVED, _ADDED, _MARK, _BLANK = 32, 45, 43, 92, 10
_VERSION = re.compile(rb"\d+(?:\.\w+)+\s*\Z")
_PLAIN = bytes.maketrans(b"\n", b" ")
_SHORT = 32
_MARK_LENGTH = 12
"""Bytes of the shortest no-newline marker in any language, by git's reckoning."""


@dataclass(frozen=True)
class Fault:
    """A hunk that does not read as stated.

    line: index of the line to point at. what: "short", "signature", "header", "marker",
    "cut" (the file's last line has no line end).
    """

    what: str
    line: int


@dataclass(frozen=True)
class Measure:
    """How long a hunk's body really is: lines of both sides, and the index after it."""

    old: int
    new: int
    end: int
    cut: bool
    """Whether the body runs to the end of the file, whose last line has no line end."""


def read_hunk(
    lines: list[bytes], at: int, header: re.Match[bytes], whole: Whole
) -> tuple[Hunk | None, int, Fault | None]:
    """The hunk whose header stands at `lines[at]`, the index after it, and what is wrong.

    What stands in `lines` of a hunk without fault is its contents afterwards. whole: the file.
    """
    hunk, end, fault = _read(lines, at, header, whole)
    if fault is not None:
        put_back(lines, at + 1, end, whole)
    return hunk, end, fault


def put_back(lines: list[bytes], first: int, last: int, whole: Whole) -> None:
    """Put lines that were read back into the list, as they stand in the file."""
    lines[first:last] = split_lines(whole.between(first, last))


@lru_cache(maxsize=1024)
def _one(tags: bytes) -> bytes:
    """The same bytes, once for all hunks of this shape: most patches have few of them."""
    return tags


def _read(
    lines: list[bytes], at: int, header: re.Match[bytes], whole: Whole
) -> tuple[Hunk | None, int, Fault | None]:
    old = want_old = 1 if header[2] is None else int(header[2])
    new = want_new = 1 if header[4] is None else int(header[4])
    tags = bytearray()
    contents: list[bytes] = []
    mark, add = tags.append, contents.append
    marked = False
    line = b"\n"
    i, end = at + 1, len(lines)
    while old > 0 or new > 0:
        if i == end:
            return None, i, Fault("short", i)
        line = lines[i]
        tag = line[0]
        if tag == _CONTEXT:
            old -= 1
            new -= 1
            content = line[1:]
        elif tag == _ADDED:
            new -= 1
            content = line[1:]
        elif tag == _REMOVED:
            old -= 1
            content = line[1:]
        elif tag == _BLANK:
            # A blank context line whose space an editor removed: every reader takes it.
            old -= 1
            new -= 1
            content = line
        elif tag == _MARK and is_marker(line) and contents:
            marked = True
            contents[-1] = contents[-1].removesuffix(b"\n")
            i += 1
            continue
        else:
            return None, i, Fault("short", i)
        mark(tag)
        add(content)
        lines[i] = content
        i += 1
    if old < 0 or new < 0:
        return None, i, Fault("short", i - 1)
    if i > at + 1 and line[-1] != _BLANK:
        return None, i, Fault("cut", i - 1)
    if i < end and lines[i][0] == _MARK and lines[i][:2] == b"\\ " and contents:
        contents[-1] = contents[-1].removesuffix(b"\n")
        i += 1
    shape = bytes(tags.translate(_PLAIN))
    hunk = Hunk(
        int(header[1]),
        want_old,
        int(header[3]),
        want_new,
        _one(shape) if len(shape) <= _SHORT else shape,
        tuple(contents),
        heading(header),
        at + 1,
    )
    if i > at + 1 and lines[i - 1].startswith((b"- ", b"-\n", b"-\r", b"++ ")):
        put_back(lines, at + 1, i, whole)
    fault = _eaten(lines, i)
    if fault is None and marked and _marker_inside(hunk):
        fault = Fault("marker", at)
    return (hunk, i, None) if fault is None else (None, i, fault)


def heading(header: re.Match[bytes]) -> bytes:
    """What follows the second @@, without the space before it and the line end."""
    text = header[5].removesuffix(b"\r")
    return text[1:] if text.startswith(b" ") else text


def is_marker(line: bytes) -> bool:
    """Whether a line says that the one before it has no line end, in whatever language."""
    return line.startswith(b"\\ ") and len(line) >= _MARK_LENGTH


def is_signature(lines: Sequence[bytes], at: int) -> bool:
    """Whether a mail signature begins at `lines[at]`: `-- ` and then no diff."""
    if lines[at].rstrip() != b"--":
        return False
    if at + 1 == len(lines):
        return True
    after = lines[at + 1]
    return not after.startswith((b"+", b"@@")) and (
        not after.startswith(b"-") or is_file_header(lines, at + 1)
    )


def is_file_header(lines: Sequence[bytes], at: int) -> bool:
    """Whether a plain file header stands at `lines[at]`: `---`, `+++` and `@@` in a row."""
    return (
        at + 2 < len(lines)
        and lines[at].startswith(b"--- ")
        and lines[at + 1].startswith(b"+++ ")
        and lines[at + 2].startswith(b"@@")
    )


def measure(lines: Sequence[bytes], at: int, want_old: int, want_new: int) -> Measure:
    """The real extent of a body that begins at `lines[at]` and was to have these counts.

    Blank lines at its end may be context whose space was removed, or just blank: as many are
    taken as make the stated counts come out, else none.
    """
    i, end = at, len(lines)
    old = new = 0
    blank = 0
    while i < end:
        line = lines[i]
        if line in (b"\n", b"\r\n"):
            old, new, blank = old + 1, new + 1, blank + 1
            i += 1
            continue
        tag = line[:1]
        if tag == b" ":
            old, new = old + 1, new + 1
        elif tag == b"+":
            new += 1
        elif tag == b"-":
            if is_file_header(lines, i) or _is_versioned_signature(lines, i):
                break
            old += 1
        elif not is_marker(line):
            break
        blank = 0
        i += 1
    for take in range(blank + 1):
        if (old - take, new - take) == (want_old, want_new):
            break
    else:
        take = blank
    cut = i == end and i > at and not lines[-1].endswith(b"\n")
    return Measure(old - take, new - take, i - take, cut)


def measured_hunk(lines: Sequence[bytes], at: int, header: re.Match[bytes], real: Measure) -> Hunk:
    """The hunk with the counts that its body has. A missing last line end is supplied."""
    tags = bytearray()
    contents: list[bytes] = []
    for line in lines[at + 1 : real.end]:
        if line in (b"\n", b"\r\n"):
            tags += b" "
            contents.append(line)
        elif line[:1] == b"\\":
            if contents:
                contents[-1] = contents[-1].removesuffix(b"\n")
        else:
            tags += line[:1]
            contents.append(line[1:] if line.endswith(b"\n") else line[1:] + b"\n")
    return Hunk(
        int(header[1]),
        real.old,
        int(header[3]),
        real.new,
        bytes(tags),
        tuple(contents),
        heading(header),
        at + 1,
    )


def _is_versioned_signature(lines: Sequence[bytes], at: int) -> bool:
    """A signature beyond doubt: `-- `, a version, and nothing more of a diff."""
    if lines[at].rstrip() != b"--":
        return False
    return at + 1 == len(lines) or _VERSION.match(lines[at + 1]) is not None


def _eaten(lines: Sequence[bytes], end: int) -> Fault | None:
    """Whether the count was large enough to take in what follows the hunk."""
    last = lines[end - 1]
    if last[0] == _REMOVED and last.rstrip() == b"--" and end < len(lines):
        if _VERSION.match(lines[end]):
            return Fault("signature", end - 1)
    elif last.startswith(b"+++ ") and is_file_header(lines, end - 2):
        # No diff tool writes this: a hunk with another one below it ends in context.
        return Fault("header", end - 2)
    return None


def _marker_inside(hunk: Hunk) -> bool:
    """Whether a line without line end is followed by more of its side."""
    open_old = open_new = False
    for tag, content in hunk.lines:
        if (open_old and tag != b"+") or (open_new and tag != b"-"):
            return True
        if not content.endswith(b"\n"):
            open_old |= tag != b"+"
            open_new |= tag != b"-"
    return False
