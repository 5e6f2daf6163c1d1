"""What a patch does, done on another base: a three-way merge of every file it touches.

The pin and the series hold every pre-image, so a patch never has to look for its place: what it
made of its old base is merged with what that base has become. A hunk whose lines were changed is
then a conflict, wherever a look-alike of its context may stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from patchkit.engine.likeness import ENOUGH, likeness
from patchkit.engine.merge import Region, is_binary, merge3
from patchkit.engine.model import SYMLINK, File, Patch
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.strip import Root, target_paths
from patchkit.engine.text import split_lines
from patchkit.errors import Finding, Where

SHOWN = 3
"""Lines of each side of a conflict that a message shows."""


class Files(Protocol):
    """The part of a tree that is asked here."""

    def get(self, path: str) -> File | None:
        """The file at `path`."""


@dataclass(frozen=True)
class Clash:
    """A path that cannot be merged.

    reason: a sentence's end ("… is gone"). theirs: 0-based line range in what the patch made of
    the file; None where the whole file clashes. shown: lines for a message. more: the further
    ranges that clash in the file.
    """

    path: str
    reason: str
    theirs: tuple[int, int] | None = None
    shown: tuple[str, ...] = ()
    more: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Carried:
    """What the patch makes of the new base: path -> file, None where it goes. Where `clashes` is
    not empty the changes are those of the other paths."""

    changes: Mapping[str, File | None]
    clashes: tuple[Clash, ...] = ()


def untouched(before: Files, changes: Mapping[str, File | None], now: Files) -> bool:
    """Whether every path that `changes` touches is the same in both bases."""
    return all(same(before.get(path), now.get(path)) for path in changes)


def carry(
    before: Files,
    changes: Mapping[str, File | None],
    now: Files,
    renames: Mapping[str, str] | None = None,
) -> Carried:
    """Do on `now` what was done to `before`.

    changes: what came of `before`. renames: new path -> old path, where a file was renamed.
    """
    out: dict[str, File | None] = {}
    clashes: list[Clash] = []
    moved = dict(renames or {})
    for new, old in moved.items():
        file = _renamed(before, changes, now, new, old)
        if isinstance(file, Clash):
            clashes.append(file)
        else:
            out[old] = None
            out[new] = file
    done = {*moved, *moved.values()}
    for path, theirs in changes.items():
        if path in done:
            continue
        merged = _merged(path, before.get(path), now.get(path), theirs)
        if isinstance(merged, Clash):
            clashes.append(merged)
        else:
            out[path] = merged
    for new, old in _names_of_the_gone(before, changes, now, done).items():
        del out[new]
        clashes.append(Clash(new, f"is {show_path(old)} under another name, and that is gone"))
    return Carried(out, tuple(clashes))


def _names_of_the_gone(
    before: Files, changes: Mapping[str, File | None], now: Files, done: set[str]
) -> dict[str, str]:
    """New path -> old path of files that the patch moves without saying so, edited or not, where
    the old one has gone from the new base: what somebody removed does not come back under another
    name unseen. A file with the bytes of one that only the patch removes is that one's new name."""
    left = {
        path: file
        for path, made in changes.items()
        if made is None and path not in done
        if (file := before.get(path)) is not None
    }
    gone = {path: file for path, file in left.items() if now.get(path) is None}
    found: dict[str, str] = {}
    for new, made in changes.items() if gone else ():
        if made is None or new in done or before.get(new) or now.get(new):
            continue
        alike, old = max((likeness(file, made), path) for path, file in gone.items())
        moved = alike < 1 and any(likeness(file, made) == 1 for file in left.values())
        if alike >= ENOUGH and not moved:
            found[new] = old
    return found


def is_whole(
    before: Files,
    changes: Mapping[str, File | None],
    now: Files,
    carried: Mapping[str, File | None],
    renames: Mapping[str, str] | None = None,
) -> bool:
    """Whether `carried`, done on `now`, is all of what `changes` does on `before`.

    A merge takes what stands in `now` already as done. What is left is then another change: done
    on `before` again, it does not give the same.
    """
    back = carry(now, carried, before, renames)
    return not back.clashes and all(
        same(back.changes.get(path, before.get(path)), file) for path, file in changes.items()
    )


def renames_of(patch: Patch, root: Root, *, reverse: bool = False) -> dict[str, str]:
    """New path -> old path of every file that the patch renames."""
    found = {}
    for section in patch.sections:
        if section.kind == "rename":
            old, new = target_paths(section, root)
            if old is not None and new is not None:
                found[old if reverse else new] = new if reverse else old
    return found


def finding_of(
    clash: Clash, patch: Patch, root: Root, next: str, *, reverse: bool = False
) -> Finding:
    """The clash as a finding of `patch`: which hunk, and what stands against it."""
    hunks = hunks_of(clash, patch, root, reverse=reverse)
    hunk = hunks[0] if hunks and clash.theirs is not None else None
    what = f"hunk {hunk} of {show_path(clash.path)}" if hunk else show_path(clash.path)
    also = [f"so does hunk {number}" for number in hunks[1:]] if hunk else []
    return Finding(
        "conflict",
        f"{patch.name} does not fit any more: {what} {clash.reason}",
        Where(patch.name, clash.path, hunk, None),
        expected="the file that the patch changes, as it was"
        if clash.theirs is None
        else "the lines that the patch changes, as they were",
        found="it is not" if clash.theirs is None else "they are changed",
        details=(*clash.shown, *also),
        next=next,
    )


def hunks_of(clash: Clash, patch: Patch, root: Root, *, reverse: bool = False) -> list[int]:
    """The numbers of the hunks that clash: all of the file's where the whole file does."""
    spans: dict[int, tuple[int, int]] = {}
    for section, number, hunk in patch.hunks():
        try:
            paths = target_paths(section, root)
        except ValueError:
            continue
        start, count = (
            (hunk.old_start, hunk.old_count) if reverse else (hunk.new_start, hunk.new_count)
        )
        if clash.path in paths:
            spans[number] = start - 1, start - 1 + count
    if clash.theirs is None:
        return sorted(spans)
    found: set[int] = set()
    for first, last in (clash.theirs, *clash.more):
        inside = [n for n, (start, stop) in spans.items() if start < last and first < stop]
        beside = [n for n, (start, stop) in spans.items() if start <= last and first <= stop]
        found.update(inside or beside[:1])
    return sorted(found)


def _renamed(
    before: Files, changes: Mapping[str, File | None], now: Files, new: str, old: str
) -> File | Clash:
    if now.get(old) is None:
        return Clash(old, "renames a file that is gone")
    if now.get(new) is not None and before.get(new) is None:
        return Clash(new, "is the new name of a file, and another file has it now")
    merged = _merged(new, before.get(old), now.get(old), changes.get(new))
    return Clash(new, "renames a file that is gone") if merged is None else merged


def _merged(
    path: str, base: File | None, ours: File | None, theirs: File | None
) -> File | Clash | None:
    """The file at `path` with both changes: of the new base (ours) and of the patch (theirs)."""
    if same(base, ours) or same(ours, theirs):
        return theirs
    if same(base, theirs):
        return ours
    if base is None:
        return Clash(path, "is a new file of the patch, and another file stands there now")
    if ours is None:
        return Clash(path, "is a file that is gone")
    if theirs is None:
        return Clash(path, "is deleted by the patch, and has other lines now")
    if SYMLINK in (base.mode, ours.mode, theirs.mode):
        return Clash(path, "is a symbolic link on one of the sides")
    if any(is_binary(file.data) for file in (base, ours, theirs)):
        return Clash(path, "is a binary file, which cannot be merged")
    if base.mode not in (ours.mode, theirs.mode) and ours.mode != theirs.mode:
        return Clash(path, "has another mode on each side")
    merged = merge3(base.data, ours.data, theirs.data)
    if merged.conflicts:
        region, *others = merged.conflicts
        more = tuple(other.theirs for other in others)
        return Clash(path, _where(region), region.theirs, _shown(region, ours, theirs), more)
    return File(merged.data, theirs.mode if ours.mode == base.mode else ours.mode)


def _where(region: Region) -> str:
    first, last = region.ours[0] + 1, region.ours[1]
    lines = f"line {first}" if last <= first else f"lines {first} to {last}"
    return f"changes what stands at {lines} now, and those lines are changed too"


def _shown(region: Region, ours: File, theirs: File) -> tuple[str, ...]:
    rows: list[str] = []
    for words, file, (start, stop) in (
        ("there now:", ours, region.ours),
        ("the patch makes:", theirs, region.theirs),
    ):
        lines = split_lines(file.data)[start:stop]
        rows.append(words if lines else f"{words} nothing")
        rows += [f"  {show_line(line)}" for line in lines[:SHOWN]]
        if len(lines) > SHOWN:
            rows.append(f"  and {len(lines) - SHOWN} more line(s)")
    return tuple(rows)


def same(one: File | None, two: File | None) -> bool:
    """Whether two files are one: mode and bytes."""
    if one is None or two is None:
        return one is two
    return one.mode == two.mode and one.oid == two.oid
