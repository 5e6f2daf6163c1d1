"""What a bundle prints: plain lines that are safe for any terminal and any locale.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO

from patchkit.engine.quote import show_path
from patchkit.errors import Finding
from patchkit.files.root import disk_fault


def say(text: str) -> None:
    """One line of result, on standard output."""
    _print(sys.stdout, text)


def tell(findings: Iterable[Finding]) -> None:
    """Findings, on standard error: each part on a line of its own, each finding once."""
    for finding in dict.fromkeys(findings):
        for line in lines_of(finding):
            _print(sys.stderr, line)


def lines_of(finding: Finding) -> list[str]:
    """A finding as lines."""
    where = finding.where
    place = [f"patch {show_path(where.patch)}"] if where.patch is not None else []
    if where.file is not None:
        line = f", line {where.line}" if where.line else ""
        place.append(f"file {show_path(where.file)}{line}")
    if where.hunk is not None:
        place.append(f"hunk {where.hunk}")
    out = [f"{'note' if finding.note else 'error'}: {finding.name}: {finding.message}"]
    rows = [("where", "; ".join(place)), ("expected", finding.expected), ("found", finding.found)]
    for label, text in rows:
        for number, part in enumerate(text.split("\n") if text else []):
            out.append(f"  {label + ':' if number == 0 else '':9} {part}")
    for detail in finding.details:
        out += [f"            {part}" for part in detail.split("\n")]
    if finding.next:
        out.append(f"  next:     {finding.next}")
    return out


def _print(stream: IO[str], text: str) -> None:
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    try:
        try:
            stream.write(plain + "\n")
        except UnicodeEncodeError:
            stream.write(plain.encode("ascii", "backslashreplace").decode("ascii") + "\n")
        stream.flush()
    except OSError as error:
        _hush(stream)
        # A reader that has gone changes no exit code; of a full error stream nobody can be told.
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            raise disk_fault(error, "standard output", "write") from None


def _hush(stream: IO[str]) -> None:
    """Send what the stream still holds, and all that is to come, to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    stream.flush()
