"""What stands behind the second @@ of a hunk: the function or class that the hunk is in.

The rule is ours, so that no version, attribute file or setting of git changes a patch:

1. It is the nearest line above the first line of the hunk, in the old file, that is a heading.
2. In Python (.py, .pyi) a heading is a line that begins, after blanks, with `class`, `def` or
   `async def`. This is git's own `python` driver.
3. Elsewhere it is a line that begins with a letter, `_` or `$`: git's default. In C, C++, CUDA and
   HIP a label (`public:`) is none, and `::name` is one: git's `cpp` driver.
4. It is written without blanks around it, at most 80 bytes of it, and never half a character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

LONGEST = 80

_PYTHON = re.compile(rb"[ \t]*((?:class|(?:async[ \t]+)?def)[ \t].*)", re.DOTALL)
_PLAIN = re.compile(rb"([A-Za-z_$].*)", re.DOTALL)
_C_LIKE = re.compile(rb"((?:::[ \t]*)?[A-Za-z_].*)", re.DOTALL)
_LABEL = re.compile(rb"[ \t]*[A-Za-z_][A-Za-z_0-9]*:[ \t\r\n\f\v]*(?:$|/[/*])")

_ENDINGS_PYTHON = (".py", ".pyi")
_ENDINGS_C = (
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl"),
    *(".cu", ".cuh", ".hip"),
)


def heading_of(path: str) -> Callable[[Sequence[bytes], int], bytes]:
    """The rule for a file: given its old lines and where a hunk begins (0-based), the heading."""
    if path.endswith(_ENDINGS_PYTHON):
        return _Rule(_PYTHON, None)
    if path.endswith(_ENDINGS_C):
        return _Rule(_C_LIKE, _LABEL)
    return _Rule(_PLAIN, None)


class _Rule:
    """Looks upwards. Hunks come in order, so no line is looked at twice."""

    def __init__(self, wanted: re.Pattern[bytes], never: re.Pattern[bytes] | None) -> None:
        self.wanted = wanted
        self.never = never
        self.seen = 0
        self.last = b""

    def __call__(self, lines: Sequence[bytes], at: int) -> bytes:
        stop = self.seen if at >= self.seen else 0
        if stop == 0:
            self.last = b""
        for index in range(at - 1, stop - 1, -1):
            found = self.wanted.match(lines[index])
            if found and not (self.never and self.never.match(lines[index])):
                self.last = _cut(found[1])
                break
        self.seen = at
        return self.last


def _cut(text: bytes) -> bytes:
    """At most LONGEST bytes, whole characters, no blanks at the end."""
    if len(text) > LONGEST:
        end = LONGEST
        # Bytes 10xxxxxx go on a character; a text that is not UTF-8 is cut where it is.
        while end > LONGEST - 4 and text[end] & 0xC0 == 0x80:
            end -= 1
        text = text[: LONGEST if text[end] & 0xC0 == 0x80 else end]
    return text.rstrip(b" \t\r\n\f\v")
