"""Edits of a series file: one line comes, goes, moves or changes; every other byte stays.

Each edit reads its own result again, so that none can write a file that `parse_series` refuses.
A comment on a line of its own stays where it is; a comment behind an entry goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from patchkit.errors import Finding, Refused, Where
from patchkit.series.quilt import Entry, SeriesFile, parse_series

_COMMENT = re.compile(r"[ \t](#(?!\+).*)$")


def insert(
    series: SeriesFile, entry: Entry, *, after: str | None = None, first: bool = False
) -> SeriesFile:
    """`entry` behind the patch `after`; without it at the end, or with `first` as the first entry.

    Raises Refused(missing-patch) where `after` is not listed, duplicate-entry where the patch is.
    """
    lines = list(series.lines)
    lines.insert(_place(series, after, first), entry.text())
    return _reread(lines)


def insert_all(
    series: SeriesFile, other: SeriesFile, *, after: str | None = None, first: bool = False
) -> SeriesFile:
    """All lines of `other`, its comments too, where `insert` puts an entry. No patch is in both."""
    lines = list(series.lines)
    at = _place(series, after, first)
    lines[at:at] = other.lines
    return _reread(lines)


def insert_new(series: SeriesFile, other: SeriesFile, order: Sequence[str]) -> SeriesFile:
    """Every line of `other` whose patch `series` lacks, with the comments right above it, behind
    the patch before it in `order` (all names of the result)."""
    above = 0
    for entry in other.entries:
        block = other.lines[above : entry.line]
        above = entry.line
        if entry.patch in series.names():
            continue
        place = order.index(entry.patch)
        lines = list(series.lines)
        at = _place(series, order[place - 1] if place else None, place == 0)
        lines[at:at] = block
        series = _reread(lines)
    return series


def comments_lost(series: SeriesFile, other: SeriesFile) -> list[str]:
    """The comments of `other`, on lines of their own and behind entries, that `series` lacks."""
    have = _comments(series)
    return [text for text in dict.fromkeys(_comments(other)) if text not in have]


def _comments(series: SeriesFile) -> list[str]:
    entries = {entry.line for entry in series.entries}
    out = []
    for number, line in enumerate(series.lines, 1):
        behind = _COMMENT.search(line) if number in entries else None
        text = behind[1] if behind else "" if number in entries else line.strip()
        out += [text] if text.strip("# \t") else []
    return out


def remove(series: SeriesFile, patch: str) -> SeriesFile:
    """The series without the line of `patch`."""
    lines = list(series.lines)
    del lines[series.find(patch).line - 1]
    return _reread(lines)


def move(
    series: SeriesFile, patch: str, *, after: str | None = None, first: bool = False
) -> SeriesFile:
    """The line of `patch` behind that of `after`; at the end without it, or `first`."""
    if patch == after:
        raise Refused(
            Finding(
                "duplicate-entry",
                f"{patch} cannot stand after itself",
                Where(patch=patch),
                expected="--after another patch of the series",
            )
        )
    line = series.lines[series.find(patch).line - 1]
    rest = remove(series, patch)
    lines = list(rest.lines)
    lines.insert(_place(rest, after, first), line)
    return _reread(lines)


def rename(series: SeriesFile, patch: str, to: str) -> SeriesFile:
    """The same line under another name."""
    entry = series.find(patch)
    lines = list(series.lines)
    lines[entry.line - 1] = lines[entry.line - 1].replace(patch, to, 1)
    return _reread(lines)


def change(series: SeriesFile, patch: str, **fields: object) -> SeriesFile:
    """The entry of `patch` with other `strip`, `reverse` or `guard`; its comment stays."""
    entry = series.find(patch)
    lines = list(series.lines)
    comment = _COMMENT.search(lines[entry.line - 1])
    text = replace(entry, **fields).text()  # type: ignore[arg-type]
    lines[entry.line - 1] = f"{text} {comment[1]}" if comment else text
    return _reread(lines)


def _place(series: SeriesFile, after: str | None, first: bool) -> int:
    """Index of the line before which a new entry goes."""
    if after is not None:
        return series.find(after).line
    if first and series.entries:
        return series.entries[0].line - 1
    return len(series.lines)


def _reread(lines: Sequence[str]) -> SeriesFile:
    return parse_series("".join(line + "\n" for line in lines).encode())
