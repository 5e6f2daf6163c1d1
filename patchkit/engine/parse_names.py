"""File names in the header lines of a patch, read as git reads them.

Five kinds of line name a file: `--- ` and `+++ ` of a git section, the same two of a plain
diff (which may end in a time stamp), `rename from` and its like (no prefix), and the
`diff --git` line itself, which names both sides without saying where the first one ends.
Nothing is stripped here: names come back as the patch has them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from patchkit.engine.model import path_text
from patchkit.engine.quote import read_quoted

_END_TAB = re.compile(rb"[\t\r\v\f]")
_END = re.compile(rb"[\r\v\f]")
_STAMP = re.compile(
    rb"(?:\t| +)(?:\d\d)?\d\d-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d+)?)?(?: [-+]\d\d:?\d\d)?\Z"
)
"""What `diff -u` puts behind a name; a space for the tab is white-space damage git accepts."""
_DEV_NULL = re.compile(rb"/dev/null(?:\s|\Z)")
_EPOCH = re.compile(
    rb".*\t(1969-12-31|1970-01-01) ([0-2]\d):([0-5]\d):00(?:\.0+)? ([-+])([0-2]\d):?([0-5]\d)\s*\Z",
    re.DOTALL,
)
_LONGEST = 16 * 1024
"""Bytes of the longest `diff --git` line that is searched for its two names."""
_PREFIXES = frozenset(("a", "b", "i", "w", "c", "o", "old", "new", "orig"))


@lru_cache(1 << 12)  # a series names the same files again and again
def git_name(rest: bytes) -> str | None:
    """The name after `--- ` or `+++ ` in a git section; None for /dev/null."""
    return None if is_dev_null(rest) else _name(rest, _END_TAB)


def plain_name(rest: bytes) -> str | None:
    """The name after `--- ` or `+++ ` of a plain diff; None for /dev/null."""
    if is_dev_null(rest):
        return None
    rest = rest.rstrip(b"\r\n")
    stamp = None if rest.startswith(b'"') else _STAMP.search(rest[-64:])
    if stamp:
        return _name(rest[: len(rest) - len(stamp[0])], _END)
    return _name(rest, _END_TAB)


def bare_name(rest: bytes) -> str:
    """The name after `rename from`, `copy to` and the like: no prefix, to the line's end."""
    return _name(rest, _END)


def is_dev_null(rest: bytes) -> bool:
    """Whether a side of a plain diff is no file."""
    return _DEV_NULL.match(rest) is not None


def is_epoch(rest: bytes) -> bool:
    """Whether the time stamp is 1970-01-01 00:00:00 UTC: `diff -N`'s word for no file."""
    found = _EPOCH.match(rest) if b"19" in rest else None
    if not found:
        return False
    day, hour, minute, sign, zone_hour, zone_minute = found.groups()
    zone = int(zone_hour) * 60 + int(zone_minute)
    local = int(hour) * 60 + int(minute) + (-zone if sign == b"+" else zone)
    return local == (24 * 60 if day.startswith(b"1969") else 0)


def git_line_names(rest: bytes) -> tuple[str, str] | None:
    """Both names after `diff --git `; None where they cannot be told apart.

    Only wanted where no other line names the file, and then both sides are one file, so the
    names must be equal but for their prefixes: first one part each (-p1), then none (-p0),
    then more.
    """
    rest = rest.rstrip(b"\r\n")
    if len(rest) > _LONGEST:
        return None
    quoted = read_quoted(rest)
    if quoted:
        first, at = quoted
        second = rest[at:].lstrip(b" \t")
        return path_text(first), _name(second, _END) if second else ""
    if rest.endswith(b'"'):
        at = rest.find(b' "')
        last = read_quoted(rest, at + 1) if at > 0 else None
        if last and last[1] == len(rest):
            return path_text(rest[:at]), path_text(last[0])
    return _split_equal(rest)


def _split_equal(rest: bytes) -> tuple[str, str] | None:
    # With prefixes of one length the two names have one length: try the middle first, which
    # is also where git ends up; a long line is then not searched for every space.
    middle = len(rest) // 2
    if len(rest) % 2 and rest[middle : middle + 1] in b" \t":
        first, second = rest[:middle], rest[middle + 1 :]
        if _after(first, 1) == _after(second, 1) is not None:
            return path_text(first), path_text(second)
    gaps = [m.start() for m in re.finditer(rb"[ \t]", rest)][:200]
    for strip in (1, 0, 2, 3, 4, 5, 6, 7, 8, 9):
        for at in gaps:
            same = _after(rest[:at], strip)
            if same and same == _after(rest[at + 1 :], strip):
                return path_text(rest[:at]), path_text(rest[at + 1 :])
    return None


def _after(name: bytes, strip: int) -> bytes | None:
    parts = name.split(b"/", strip)
    return parts[strip] if len(parts) > strip else None


def _name(rest: bytes, end: re.Pattern[bytes]) -> str:
    quoted = read_quoted(rest)
    if quoted:
        return path_text(quoted[0])
    rest = rest.rstrip(b"\n")
    found = end.search(rest)
    return path_text(rest[: found.start()] if found else rest)


def without_prefix(name: str) -> str:
    """A name as a person means it: without a/, b/ and their like. For messages only."""
    first, slash, rest = name.partition("/")
    return rest if slash and rest and first in _PREFIXES else name
