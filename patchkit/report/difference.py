"""A patch's diff for a page: files, hunks, lines with their numbers on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from patchkit.derive.derive import Derived
from patchkit.engine.model import File, Hunk, Overlay, Section, Tree
from patchkit.engine.strip import target_paths
from patchkit.report.highlight import Coloured

_KINDS = {b" ": "same", b"-": "old", b"+": "new"}


@dataclass(frozen=True)
class DiffLine:
    """kind: same, old or new. before, after: line numbers, "" on the side without the line."""

    kind: str
    before: str
    after: str
    html: Markup
    bare: bool = False
    """Whether the line has no line end (the last of a file)."""


@dataclass(frozen=True)
class DiffHunk:
    """place: what stands between the @@ signs. heading: what follows them."""

    place: str
    heading: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class DiffFile:
    """One section. kind: modify, create, delete, rename or copy. note: what no hunk shows."""

    path: str
    before: str
    kind: str
    added: int
    removed: int
    hunks: tuple[DiffHunk, ...]
    note: str


def differences(derived: Derived, base: Tree) -> Iterator[tuple[DiffFile, ...]]:
    """For each patch of the chain its files, coloured on the trees before and after it."""
    now = Overlay(base)
    for outcome in derived.outcomes:
        files = []
        for section in outcome.patch.sections:
            old_path, new_path = target_paths(section, outcome.root)
            old = now.get(old_path) if old_path else None
            new = outcome.changes.get(new_path) if new_path else None
            files.append(_file(section, old_path or "", new_path or "", old, new))
        now.changes.update(outcome.changes)
        yield tuple(files)


def _file(
    section: Section, old_path: str, new_path: str, old: File | None, new: File | None
) -> DiffFile:
    path = new_path or old_path
    before, after = Coloured(old_path or path, old), Coloured(path, new)
    hunks = tuple(_hunk(hunk, before, after) for hunk in section.hunks)
    lines = [line for hunk in hunks for line in hunk.lines]
    moved = old_path if new_path and old_path != new_path else ""
    return DiffFile(
        path,
        moved,
        section.kind,
        sum(line.kind == "new" for line in lines),
        sum(line.kind == "old" for line in lines),
        hunks,
        _note(section),
    )


def _hunk(hunk: Hunk, before: Coloured, after: Coloured) -> DiffHunk:
    old, new = hunk.old_start, hunk.new_start
    lines = []
    for tag, content in hunk.lines:
        kind = _KINDS[tag]
        side, number = (before, old) if tag == b"-" else (after, new)
        html = side.line(number, content)
        lines.append(
            DiffLine(
                kind,
                str(old) if tag != b"+" else "",
                str(new) if tag != b"-" else "",
                html,
                not content.endswith(b"\n"),
            )
        )
        old += tag != b"+"
        new += tag != b"-"
    place = f"-{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count}"
    heading = hunk.heading.decode("utf-8", "surrogateescape").strip()
    return DiffHunk(place, heading, tuple(lines))


def _note(section: Section) -> str:
    if section.binary:
        return "binary content"
    if section.old_mode and section.new_mode and section.old_mode != section.new_mode:
        return f"mode {section.old_mode:o} becomes {section.new_mode:o}"
    return "" if section.hunks else "no lines change"
