"""Fuzz as GNU patch means it: context lines dropped from the ends of a hunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchkit.engine.model import Hunk
from patchkit.engine.rule import MAX_FUZZ


@dataclass(frozen=True)
class Trimmed:
    """How much of a hunk's context is dropped: `fuzz` as GNU patch counts it, `lead` lines at
    the top and `trail` at the bottom.
    """

    fuzz: int
    lead: int
    trail: int

    def of(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """The lines that are left."""
        return lines[self.lead : len(lines) - self.trail]


def context(hunk: Hunk) -> tuple[int, int]:
    """Lines of leading and of trailing context."""
    size = len(hunk.tags)
    return size - len(hunk.tags.lstrip(b" ")), size - len(hunk.tags.rstrip(b" "))


def trims(hunk: Hunk, fuzz: int) -> Iterator[Trimmed]:
    """Each fuzz from 1 to `fuzz` (at most MAX_FUZZ) that leaves something to match.

    The side with more context loses lines first. A hunk never loses all of its pre-image.
    """
    lead, trail = context(hunk)
    most = max(lead, trail)
    for n in range(1, min(fuzz, MAX_FUZZ) + 1):
        trim = Trimmed(n, max(n - (most - lead), 0), max(n - (most - trail), 0))
        if trim.lead > lead or trim.trail > trail or not (trim.lead or trim.trail):
            return
        if not trim.of(hunk.old):
            return
        yield trim
