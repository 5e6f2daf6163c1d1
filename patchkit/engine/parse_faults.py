"""Why a hunk does not read as its header states, in words."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.engine.parse_hunks import Fault
from patchkit.engine.quote import show_line

_SENTENCES = {
    "short": "the hunk's header counts other lines than stand below it",
    "stray": (
        "a line that belongs to no hunk stands before the next hunk, which other readers then skip"
    ),
    "signature": (
        'the header counts the mail signature "-- " as a removed line: the hunk is one line short'
    ),
    "header": "the header counts the next file's --- and +++ lines as changes",
    "marker": "a line is said to have no line end, and more lines follow it",
}


def explain_fault(lines: Sequence[bytes], fault: Fault, cut: bool) -> tuple[str, tuple[str, ...]]:
    """A sentence, and details, about a hunk with this fault.

    cut: whether the hunk runs to the end of the file, whose last line has no line end.
    """
    if fault.what == "cut":
        return (
            f"the last line of the patch (line {fault.line + 1}) has no line end: was it lost "
            "from the patch, or has the file none? Only the author knows"
        ), ()
    details: tuple[str, ...] = ()
    if cut:
        last = f"the last line (line {len(lines)}) has no line end: the file looks cut off"
        details = (last,)
    if fault.what == "left":
        shown = show_line(lines[fault.line])
        return f"a changed line behind the hunk would be lost: {shown}", details
    return _SENTENCES[fault.what], details
