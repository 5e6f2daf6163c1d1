"""A patch file's bytes into sections and hunks: strictly, and with every fault in one run.

What git's own `git apply` reads is read the same; what it reads by losing a change (a line
left over behind a hunk, a hunk without numbers) is refused, with the place and the way out.
Nothing here knows a tree: names are as written, strip levels come later (`engine/strip`).
"""

from __future__ import annotations

from patchkit.engine.model import Patch
from patchkit.engine.parse_checks import names_of
from patchkit.engine.parse_reader import Reader, Scan
from patchkit.errors import Finding, Refused, Where

__all__ = ["MAX_BYTES", "MAX_LINES", "Scan", "names_of", "parse", "scan"]

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the largest patch file that is read."""
MAX_LINES = 600_000
MAX_DENSITY = 24
"""It may have so many lines, and one more for each so many bytes. A line takes some 70 bytes of
memory beside its own, so what a patch takes stays below four times its size and 100 MB."""


def parse(data: bytes, name: str, *, recount: bool = False) -> Patch:
    """The patch in `data`. Several mails in one file give their sections in order.

    name: the file's name, for messages. recount: wrong counts in hunk headers are corrected
    (and noted) instead of refused; never done unless a person asked for it.
    Raises Refused with every finding of the file.
    """
    found = scan(data, name, recount=recount)
    if found.findings:
        raise Refused(*found.findings)
    return found.patch


def scan(data: bytes, name: str, *, recount: bool = False) -> Scan:
    """As `parse`, but returns the findings beside what could be read."""
    lines = data.count(b"\n")
    if len(data) > MAX_BYTES or lines > MAX_LINES + len(data) // MAX_DENSITY:
        finding = Finding(
            "too-large",
            "the patch file is too large to be one",
            Where(patch=name),
            expected=f"at most {MAX_BYTES} bytes, and {MAX_LINES} lines and one for every "
            f"{MAX_DENSITY} bytes",
            found=f"{len(data)} bytes, {lines} lines",
        )
        return Scan(Patch(name, (), b"", data), (finding,))
    return Reader(data, name, recount).run()
