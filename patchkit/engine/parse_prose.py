"""What a patch file holds beside its sections: nothing, prose, or something else altogether."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchkit.engine.quote import show_line

BOM = b"\xef\xbb\xbf"

_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body|\?xml)\b", re.IGNORECASE)
_NORMAL_DIFF = re.compile(rb"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?\n[<>] ", re.MULTILINE)
_QUOTED_DIFF = re.compile(rb"^(?:[>|] ?|[ \t]+)(?:diff --git |@@ -\d)", re.MULTILINE)
_HERE_DOCUMENT = re.compile(rb"<<-?[ \t]*(['\"\\]?)(\w+)\1")


def why_no_diff(data: bytes) -> tuple[str, str]:
    """For a file without any diff: what it is instead, and what to do."""
    fetch = "get the patch again"
    if not data:
        return "the file is empty", fetch
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0@\0@\0" in data[:4096]:
        return (
            "the file is UTF-16, as PowerShell's > writes it",
            "git diff --output=FILE writes the bytes as they are",
        )
    if data[:2] == b"\x1f\x8b":
        return "the file is compressed (gzip)", "unpack it first"
    if data[:3] == b"BZh" or data[:6] == b"\xfd7zXZ\0" or data[:4] == b"\x28\xb5\x2f\xfd":
        return "the file is compressed", "unpack it first"
    if _HTML.match(data[:512]):
        return "the file is an HTML page, not a patch", fetch + ", from its raw address"
    if not data.strip():
        return "the file has only white space", fetch
    if b"\x1b[" in data and b"diff --git " in data:
        return "the diff holds colour codes", "git diff --no-color"
    if b"\r" in data and b"\n" not in data:
        return "its lines end in CR alone", fetch
    if _QUOTED_DIFF.search(data):
        return (
            "the diff in it is quoted or indented: every line begins with something else",
            "take the quotation marks away",
        )
    return "nothing in the file is a diff", "a patch has lines --- FILE, +++ FILE, @@ -…"


def is_context_diff(lines: Sequence[bytes], at: int) -> bool:
    """Whether an old-style context diff begins at `lines[at]`."""
    return (
        at + 2 < len(lines)
        and lines[at].startswith(b"*** ")
        and lines[at + 1].startswith(b"--- ")
        and lines[at + 2].startswith(b"***************")
    )


def normal_diff_line(data: bytes) -> int | None:
    """The 1-based line of a `diff` without -u, where there is one."""
    found = _NORMAL_DIFF.search(data)
    return data.count(b"\n", 0, found.start()) + 1 if found else None


def here_document(lines: Sequence[bytes], first: int, last: int) -> tuple[tuple[int, str], ...]:
    """Shell lines around the patch: (1-based line, the line for a person).

    first: index of the first section's first line; last: index after the last one's last.
    """
    words: dict[bytes, int] | None = None
    for i in range(min(first, 200)):
        opened = _HERE_DOCUMENT.search(lines[i][:400])
        if opened:
            if words is None:
                words = {lines[j].strip(): j for j in range(len(lines) - 1, last - 1, -1)}
            closed = words.get(opened[2])
            if closed is not None:
                return ((i + 1, show_line(lines[i])), (closed + 1, show_line(lines[closed])))
    return ()
