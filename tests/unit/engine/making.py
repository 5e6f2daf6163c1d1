"""Small trees and patches for tests of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff

from patchkit.engine.model import REGULAR, File, MemoryTree, Patch
from patchkit.engine.parse import parse
from patchkit.errors import Finding


def tree(files: Mapping[str, str | bytes | File]) -> MemoryTree:
    """A tree from texts."""
    return MemoryTree({path: as_file(value) for path, value in files.items()})


def as_file(value: str | bytes | File, mode: int = REGULAR) -> File:
    if isinstance(value, File):
        return value
    return File(value.encode() if isinstance(value, str) else value, mode)


def texts(of: MemoryTree) -> dict[str, str]:
    """The tree's contents as texts."""
    return {path: file.data.decode() for path, file in sorted(of.files.items())}


def numbered(first: int, last: int, word: str = "line") -> list[str]:
    """Lines that are all different."""
    return [f"{word} {n}\n" for n in range(first, last + 1)]


def diff(path: str, old: Iterable[str], new: Iterable[str], context: int = 3) -> str:
    """A git-like diff of one file that both sides have."""
    body = "".join(unified_diff([*old], [*new], f"a/{path}", f"b/{path}", n=context))
    return f"diff --git a/{path} b/{path}\n{body}"


def patch(text: str | bytes, name: str = "x.patch") -> Patch:
    """A patch, parsed; it must be well-formed."""
    return parse(text.encode() if isinstance(text, str) else text, name)


def names(findings: Iterable[Finding]) -> list[str]:
    """The findings' names, in order."""
    return [finding.name for finding in findings]


def words(findings: Iterable[Finding]) -> str:
    """All that findings say."""
    return "\n".join(
        part
        for f in findings
        for part in (f.message, f.expected, f.found, *f.details, f"next: {f.next}")
    )


def put_in(lines: list[str], at: int, *new: str) -> list[str]:
    """The lines with `new` before index `at`."""
    return [*lines[:at], *new, *lines[at:]]
