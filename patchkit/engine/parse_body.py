"""All hunks of one section, and what stands behind each: nothing that is a change is skipped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchkit.engine.hunk_text import renumbered
from patchkit.engine.model import Hunk
from patchkit.engine.parse_faults import explain_fault
from patchkit.engine.parse_hunks import (
    HUNK_HEADER,
    Fault,
    is_file_header,
    is_signature,
    measure,
    measured_hunk,
    put_back,
    read_hunk,
)
from patchkit.engine.parse_report import Mend, Report
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.text import Whole

_AT = 64
_BLANKS = (b"\n", b"\r\n")
_LIKE_A_BODY = b" +-\n\r"


def read_hunks(
    lines: list[bytes], i: int, file: str, report: Report, whole: Whole, *, recount: bool
) -> tuple[list[Hunk], int, int]:
    """The hunks from `lines[i]` on; the index to go on at; the index after the last hunk.

    file: the section's file, for messages. whole: the patch file. recount: correct and note wrong
    counts.
    """
    end = len(lines)
    out: list[Hunk] = []
    stop = i
    number = 0
    mended = False
    while i < end and lines[i][0] == _AT and lines[i].startswith(b"@@"):
        number += 1
        at = i
        header = HUNK_HEADER.match(lines[at])
        if header is None:
            i = stop = bare_header(lines, at, file, number, report)
            continue
        hunk, i, fault = read_hunk(lines, at, header, whole)
        stop = i
        if hunk is not None and i < end and lines[i][0] in _LIKE_A_BODY:
            i, fault = _left_over(lines, i, file, number, report)
            if fault is not None:
                put_back(lines, at + 1, stop, whole)
        if fault is not None:
            hunk, i = _mend(lines, at, header, fault, file, number, report, recount)
            stop = i
            i = _past_blanks(lines, i)
            if hunk is not None:
                report.mends.append(Mend(at, i, fault.what, hunk))
                mended = True
        if hunk is not None:
            out.append(hunk)
    return (list(renumbered(out)) if mended else out), i, stop


def skip_body(lines: Sequence[bytes], at: int, header: re.Match[bytes]) -> int:
    """The index after the body of the hunk at `lines[at]`, however long it really is."""
    old, new = _stated(header)
    return measure(lines, at + 1, old, new).end


def bare_header(
    lines: Sequence[bytes], at: int, file: str | None, number: int | None, report: Report
) -> int:
    """Report a line that begins with @@ and has no numbers; returns the index after its body."""
    line = lines[at]
    if line.startswith(b"@@@"):
        report.not_unified(lines, at, "it shows a merge (git's combined diff)")
    else:
        report.find(
            "bare-hunk-header",
            f"a hunk header without good line numbers: {show_line(line)}",
            at,
            file=file,
            hunk=number,
            expected="@@ -LINE,COUNT +LINE,COUNT @@",
            found=show_line(line),
            next="make the diff anew; what has no line number cannot be placed",
        )
    return measure(lines, at + 1, -1, -1).end


def _stated(header: re.Match[bytes]) -> tuple[int, int]:
    """The counts of a header; a count that is left out is 1."""
    return (
        1 if header[2] is None else int(header[2]),
        1 if header[4] is None else int(header[4]),
    )


def _past_blanks(lines: Sequence[bytes], i: int) -> int:
    """The index of the next hunk header, where only blank lines stand before it; else `i`."""
    at = i
    while at < len(lines) and lines[at] in _BLANKS:
        at += 1
    return at if at < len(lines) and lines[at].startswith(b"@@") else i


def _left_over(
    lines: Sequence[bytes], i: int, file: str, number: int, report: Report
) -> tuple[int, Fault | None]:
    """What stands behind a complete hunk, where it looks like more of it.

    Context left over loses nothing and is noted; a change left over would be lost.
    """
    if is_file_header(lines, i) or is_signature(lines, i):
        return i, None
    first, end = i, len(lines)
    while i < end and (lines[i][:1] == b" " or lines[i] in _BLANKS):
        i += 1
    if i < end and lines[i][:1] in (b"+", b"-"):
        if not is_file_header(lines, i) and not is_signature(lines, i):
            return i, Fault("left", i)
    elif i < end and lines[i].startswith(b"@@"):
        return i, Fault("stray", first)
    if lines[first][:1] == b" ":
        last = first
        while last + 1 < i and lines[last + 1][:1] == b" ":
            last += 1
        report.surplus.append((first, last + 1))
        which = f"line {first + 1} is" if last == first else f"lines {first + 1} to {last + 1} are"
        report.find(
            "corrupt-hunk-count",
            f"{which} surplus: the hunk above is complete by its header; nothing is lost",
            first,
            file=file,
            hunk=number,
            next=f"patchkit lint {show_path(report.name)}",
            note=True,
        )
    return i, None


def _mend(
    lines: Sequence[bytes],
    at: int,
    header: re.Match[bytes],
    fault: Fault,
    file: str,
    number: int,
    report: Report,
    recount: bool,
) -> tuple[Hunk | None, int]:
    """Report a hunk whose counts do not come out; with `recount` correct and note it."""
    old, new = _stated(header)
    real = measure(lines, at + 1, old, new)
    message, details = explain_fault(lines, fault, real.cut)
    # An added line that the file's end cuts off would become content of the file.
    torn = real.cut and lines[real.end - 1].startswith(b"+")
    fix = recount and fault.what != "marker" and real.end > at + 1 and not torn
    report.find(
        "corrupt-hunk-count",
        message,
        at if fault.what in ("short", "marker") else fault.line,
        file=file,
        hunk=number,
        expected=f"{old} old and {new} new lines, as its header (line {at + 1}) says",
        found=f"{real.old} old and {real.new} new lines",
        details=details,
        next=f"patchkit import --recount {show_path(report.name)} (never done unasked)",
        note=fix,
    )
    end = max(real.end, at + 1)
    return (measured_hunk(lines, at, header, real), end) if fix else (None, end)
