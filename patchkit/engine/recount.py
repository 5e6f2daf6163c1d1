"""Hunk headers made to say what their hunks hold. Only where a person asked for it.

Counts go wrong when a patch is edited by hand. The body then tells what was meant, except
where it was cut off; so nothing here runs unasked, and the corrected file is shown.
"""

from __future__ import annotations

from patchkit.engine.hunk_text import body_lines, header_line
from patchkit.engine.parse import Scan, scan
from patchkit.engine.text import split_lines
from patchkit.errors import Refused


def recount(data: bytes, name: str) -> bytes:
    """The patch file with every hunk header corrected; the same bytes where none is wrong.

    Line numbers of the new side in a section with a corrected hunk are made to follow. What is
    no hunk stays byte for byte. Raises Refused where something other than counts is wrong.
    """
    found = scan(data, name, recount=True)
    if found.findings:
        raise Refused(*found.findings)
    return rewritten(data, found)


def rewritten(data: bytes, found: Scan) -> bytes:
    """`data` with the hunks that `found` mended, and the numbers of their sections."""
    if not found.mends:
        return data
    bom = len(data) - len(data.removeprefix(b"\xef\xbb\xbf"))
    lines = split_lines(data[bom:])
    mended = {mend.start: mend for mend in found.mends}
    # Last first: what is put in below does not move what stands above.
    for section in reversed(found.patch.sections):
        if not any(hunk.patch_line - 1 in mended for hunk in section.hunks):
            continue
        for hunk in reversed(section.hunks):
            at = hunk.patch_line - 1
            mend = mended.get(at)
            end = _eol(lines[at])
            head = header_line(hunk).removesuffix(b"\n") + end
            lines[at : mend.end if mend else at + 1] = [head, *(body_lines(hunk) if mend else ())]
    return data[:bom] + b"".join(lines)


def _eol(line: bytes) -> bytes:
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"
