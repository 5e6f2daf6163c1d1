"""Where the parser's findings gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.engine.model import Hunk
from patchkit.engine.quote import show_line
from patchkit.errors import Finding, Where


@dataclass(frozen=True)
class Mend:
    """A hunk whose counts were corrected.

    start, end: its line indices, header to behind the body (and any stray blank lines).
    what: the fault (`parse_hunks.Fault.what`). hunk: with the counts that its body has.
    """

    start: int
    end: int
    what: str
    hunk: Hunk


class Report:
    """The findings about one patch file, in the order they are met, and what was mended.

    surplus: ranges of line indices of context that no hunk counts.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[Finding] = []
        self.mends: list[Mend] = []
        self.surplus: list[tuple[int, int]] = []

    def find(
        self,
        name: str,
        message: str,
        at: int | None,
        *,
        file: str | None = None,
        hunk: int | None = None,
        expected: str = "",
        found: str = "",
        next: str = "",
        details: tuple[str, ...] = (),
        note: bool = False,
    ) -> None:
        """Record a finding at line index `at` (None: of the whole file)."""
        where = Where(self.name, file, hunk, None, None if at is None else at + 1)
        self.findings.append(Finding(name, message, where, expected, found, next, details, note))

    def not_unified(self, lines: Sequence[bytes], at: int, message: str) -> None:
        """Record a diff of another kind, which begins at line index `at`."""
        self.find(
            "not-unified",
            message,
            at,
            expected="a unified diff (diff -u, git diff)",
            found=show_line(lines[at]),
            next="make the diff anew with diff -u or git diff",
        )

    def in_order(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The findings that refuse the file, and the notes; each by line of the patch."""
        ordered = sorted(self.findings, key=lambda f: f.where.patch_line or 0)
        return (
            tuple(f for f in ordered if not f.note),
            tuple(f for f in ordered if f.note),
        )
