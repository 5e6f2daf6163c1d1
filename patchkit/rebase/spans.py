"""Ranges of lines followed over a difference. All are 0-based, their ends excluded."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.engine.diff import Range

Span = tuple[int, int]


def across(changes: Sequence[Range], span: Span) -> Span:
    """The range of the new side that answers to `span` of the old one.

    What came right before or right behind it is not in it; an end that was changed itself is
    stretched to the end of that change.
    """
    start, stop = span
    first, last = start, stop
    for i1, i2, j1, j2 in changes:
        if i2 <= start:
            first = start + j2 - i2
        elif i1 < start:
            first = j1
        if i2 <= stop and i1 < stop:
            last = stop + j2 - i2
        elif i1 < stop:
            last = j2
    return first, max(first, last)


def meets(change: Range, span: Span) -> bool:
    """Whether the change takes or parts lines of the span."""
    i1, i2 = change[:2]
    return i1 < span[1] and i2 > span[0] if i1 < i2 else span[0] < i1 < span[1]


def touches(change: Range, span: Span) -> bool:
    """Whether a merge sets the change against one of the span: no common line is between them."""
    return change[0] <= span[1] and change[1] >= span[0]
