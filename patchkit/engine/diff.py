"""Differences of two files as ranges and as hunks: the same for the same bytes, always."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchkit.engine.diff_core import changed_lines
from patchkit.engine.diff_slide import slide
from patchkit.engine.model import Hunk

Range = tuple[int, int, int, int]
"""old from, old to, new from, new to: 0-based, ends excluded; at least one side is not empty."""


def diff_lines(
    old: Sequence[bytes], new: Sequence[bytes], *, by_indent: bool = True
) -> list[Range]:
    """The changed ranges, in order, with at least one common line between two of them.

    by_indent: put a group that could stand in several places where a reader expects it, as
    `git diff` does; without it groups stand where `git merge-file` puts them.
    """
    gone, come = changed_lines(old, new)
    slide(old, gone, come, by_indent=by_indent)
    slide(new, come, gone, by_indent=by_indent)
    ranges: list[Range] = []
    i = j = 0
    while True:
        # Over the common lines to the next change of either side.
        skips = [n - at for n, at in ((gone.find(1, i), i), (come.find(1, j), j)) if n >= 0]
        if not skips:
            return ranges
        i += min(skips)
        j += min(skips)
        i_end, j_end = _run_end(gone, i), _run_end(come, j)
        ranges.append((i, i_end, j, j_end))
        i, j = i_end, j_end


def _run_end(flags: bytearray, at: int) -> int:
    end = flags.find(0, at)
    return len(flags) if end < 0 else end


def make_hunks(
    old: Sequence[bytes],
    new: Sequence[bytes],
    context: int = 3,
    heading: Callable[[Sequence[bytes], int], bytes] | None = None,
) -> list[Hunk]:
    """The hunks that turn `old` into `new`, with `context` common lines around each change.

    Changes with at most 2 * context lines between them share a hunk. heading: given the old lines
    and the index of the first line of a hunk, what stands behind its second @@.
    """
    hunks = []
    group: list[Range] = []
    for change in diff_lines(old, new):
        if group and change[0] - group[-1][1] > 2 * context:
            hunks.append(_hunk(old, new, group, context, heading))
            group = []
        group.append(change)
    if group:
        hunks.append(_hunk(old, new, group, context, heading))
    return hunks


def _hunk(
    old: Sequence[bytes],
    new: Sequence[bytes],
    changes: Sequence[Range],
    context: int,
    heading: Callable[[Sequence[bytes], int], bytes] | None,
) -> Hunk:
    first, last = changes[0], changes[-1]
    before = min(context, first[0])
    after = min(context, len(old) - last[1])
    start, new_start = first[0] - before, first[2] - before
    tags = bytearray()
    contents: list[bytes] = []
    at = start
    for i, i_end, j, j_end in changes:
        contents += [*old[at:i], *old[i:i_end], *new[j:j_end]]
        tags += b" " * (i - at) + b"-" * (i_end - i) + b"+" * (j_end - j)
        at = i_end
    contents += old[at : last[1] + after]
    tags += b" " * (last[1] + after - at)
    old_count = last[1] + after - start
    new_count = last[3] + after - new_start
    # An empty side is numbered by the line before it, as every reader of patches expects.
    return Hunk(
        start + 1 if old_count else start,
        old_count,
        new_start + 1 if new_count else new_start,
        new_count,
        bytes(tags),
        tuple(contents),
        heading(old, start) if heading else b"",
    )
