"""A hunk as the lines of a patch file, and the numbers that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchkit.engine.model import Hunk

NO_NEWLINE = b"\\ No newline at end of file\n"


def header_line(hunk: Hunk) -> bytes:
    """The hunk's @@ line with its line end, as git writes it (a count of 1 is left out)."""
    heading = b" " + hunk.heading if hunk.heading else b""
    old = _range(hunk.old_start, hunk.old_count)
    new = _range(hunk.new_start, hunk.new_count)
    return b"@@ -" + old + b" +" + new + b" @@" + heading + b"\n"


def body_lines(hunk: Hunk) -> list[bytes]:
    """The hunk's body, each line with its line end, the no-newline marker where it belongs."""
    out = []
    for tag, content in hunk.lines:
        if content.endswith(b"\n"):
            out.append(tag + content)
        else:
            out += [tag + content + b"\n", NO_NEWLINE]
    return out


def renumbered(hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """The hunks of one section with new starts that follow from the old ones.

    git places a hunk by its new start and GNU patch by its old one: they agree only where the
    one follows from the other and from the lines that the hunks above add and remove.
    """
    out = []
    shift = 0
    for hunk in hunks:
        first = hunk.old_start + (hunk.old_count == 0)
        start = first + shift - (hunk.new_count == 0)
        out.append(hunk if hunk.new_start == start else replace(hunk, new_start=start))
        shift += hunk.net
    return tuple(out)


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)
