"""What the lint rules look at, and what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from patchkit.engine.model import Hunk, Section
from patchkit.engine.parse import Scan, scan
from patchkit.engine.parse_checks import shown_name
from patchkit.engine.quote import show_path
from patchkit.engine.text import split_lines
from patchkit.errors import NOWHERE, Where
from patchkit.series.header import Header, parse_header

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Lint:
    """One thing about a patch file that is wrong, risky, or noise.

    rule: a name of `lint.RULES`, or the name of the parser's finding. level: "error" (apply
    refuses the file), "warning", or "note" (may well be right). fix: what --fix does about it,
    "" where only a person can. next: as a rule writes it, a verb without the file's name; `typed`
    makes a command of it. path: the file as a person types it, "" before that.
    """

    rule: str
    message: str
    where: Where = NOWHERE
    level: str = "warning"
    fix: str = ""
    next: str = ""
    path: str = ""

    def typed(self, path: str, refresh: str = "") -> Lint:
        """The same, its hint a command about the file at `path`.

        refresh: how the patch is written anew where it stands in a series; a loose file has to
        be imported for that.
        """
        name, at = (re.escape(show_path(p)) for p in (self.where.patch or "", path))
        verb = re.match(
            rf"patchkit (refresh|import|lint)((?: --\S+)*)(?: (?:{name}|{at}))?(?= |,|$)", self.next
        )
        if verb is None:
            return replace(self, path=path)
        rest = self.next[verb.end() :]
        if verb[1] == "refresh" and refresh:
            return replace(self, path=path, next=refresh + rest)
        word = "import" if verb[1] == "refresh" else verb[1]
        return replace(self, path=path, next=f"patchkit {word}{verb[2]} {show_path(path)}{rest}")

    def to_json(self) -> dict[str, Any]:
        """A plain dict; absent parts are left out."""
        out: dict[str, Any] = {"rule": self.rule, "level": self.level, "message": self.message}
        for key in ("patch", "file", "hunk", "line", "patch_line"):
            value = getattr(self.where, key)
            if value is not None:
                out[key] = value
        for key in ("fix", "next", "path"):
            if getattr(self, key):
                out[key] = getattr(self, key)
        return out


@dataclass(frozen=True)
class View:
    """One patch file as the rules see it. Lines are counted without a byte order mark."""

    data: bytes
    name: str

    @cached_property
    def scan(self) -> Scan:
        """What the parser says."""
        return scan(self.data, self.name)

    @cached_property
    def bom(self) -> bool:
        """Whether the file begins with a byte order mark."""
        return self.data.startswith(BOM)

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines with their line ends."""
        return split_lines(self.data.removeprefix(BOM))

    @cached_property
    def header(self) -> Header:
        """The header, read. Raises Refused(bad-header) as `parse_header` does."""
        return parse_header(self.scan.patch.header)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that read well."""
        return self.scan.patch.sections

    def with_lines(self, lines: Sequence[bytes]) -> bytes:
        """The file's bytes with other lines."""
        return (BOM if self.bom else b"") + b"".join(lines)

    def at(
        self, index: int | None, section: Section | None = None, hunk: int | None = None
    ) -> Where:
        """The place of a line index, in a section's file."""
        line = None if index is None else index + 1
        return Where(self.name, shown_name(section) if section else None, hunk, None, line)


def body_indices(section: Section) -> list[tuple[int, int, Hunk]]:
    """(index of the first body line, index behind the last) of each hunk, from what was read."""
    out = []
    for hunk in section.hunks:
        marks = sum(not content.endswith(b"\n") for content in hunk.contents)
        out.append((hunk.patch_line, hunk.patch_line + len(hunk.tags) + marks, hunk))
    return out
