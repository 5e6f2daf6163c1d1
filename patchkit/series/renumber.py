"""A carried patch: the same change at other lines, so the same bytes but for numbers and ids.

Rewriting a patch anew where only lines moved would bury every real change of a series in noise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from patchkit.engine.fuzz import context
from patchkit.engine.model import File, Hunk, Patch, Section, Tree
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root, target_paths
from patchkit.engine.text import split_lines
from patchkit.series.writer import NO_ID

_HUNK = re.compile(rb"@@ -\d+(,\d+)? \+\d+(,\d+)? @@")
_INDEX = re.compile(rb"index [0-9a-f]{4,40}\.\.[0-9a-f]{4,40}")


def renumber(
    patch: Patch,
    base: Tree,
    changes: Mapping[str, File | None],
    root: Root | None = None,
    known: Mapping[str, Sequence[int]] | None = None,
) -> bytes | None:
    """The patch's bytes with the @@ numbers and index ids that hold on `base`.

    changes: what the patch must make of `base` (from applying or from merging it). None where its
    hunks as they stand cannot give exactly that: then it must be written anew. root: how the
    patch's names become paths, -p1 without it. known: by path, the 0-based lines of `base` where
    the hunks were put to make `changes`; the other files' are looked for.
    """
    lines = split_lines(patch.data)
    touched: set[str] = set()
    for section in patch.sections:
        try:
            old_path, new_path = target_paths(section, root or Root())
        except ValueError:
            return None
        source, target = old_path or new_path or "", new_path or old_path or ""
        if {source, target} & touched or section.binary or section.kind == "copy":
            return None
        touched |= {source, target}
        old, new = base.get(source), _after(base, changes, target)
        if source != target and (base.get(target) or _after(base, changes, source)):
            return None  # a rename needs its target free before it, and its source gone after it
        put = (known or {}).get(target)
        starts = put if put is not None else _places(section.hunks, old, new)
        if starts is None or not _modes_hold(section, old, new):
            return None
        _rewrite_hunks(lines, section.hunks, starts)
        _rewrite_index(lines, section, old, new)
    others = (path for path in changes if path not in touched)
    if any(not _same(base.get(path), changes[path]) for path in others):
        return None
    return b"".join(lines)


def keep_headings(data: bytes, old: Patch, moved: Mapping[str, str] | None = None) -> bytes:
    """The patch `data`, written anew, with the headings of the hunks that `old` has too.

    A hunk is the same where it changes the same lines of the same file; its context and place may
    differ. moved: old path -> new path. So a patch whose context changed differs from its parent
    there only.
    """
    places = {f"b/{before}": f"b/{after}" for before, after in (moved or {}).items()}
    known: dict[tuple[str, Changed], list[bytes]] = {}
    for section, _, hunk in old.hunks():
        path = places.get(section.path, section.path)
        known.setdefault((path, _changed(hunk)), []).append(hunk.heading)
    lines = split_lines(data)
    for section, _, hunk in parse(data, old.name).hunks():
        headings = known.get((section.path, _changed(hunk)))
        stated = _HUNK.match(lines[hunk.patch_line - 1])
        if headings and stated is not None:
            heading = headings.pop(0)
            lines[hunk.patch_line - 1] = stated[0] + (b" " + heading if heading else b"") + b"\n"
    return b"".join(lines)


Changed = tuple[tuple[bytes, bytes], ...]
"""The lines of a hunk that are not context, each with its tag."""


def _changed(hunk: Hunk) -> Changed:
    return tuple(line for line in hunk.lines if line[0] != b" ")


def _after(base: Tree, changes: Mapping[str, File | None], path: str) -> File | None:
    return changes[path] if path in changes else base.get(path)


def _same(one: File | None, two: File | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.mode == two.mode and one.data == two.data


def _modes_hold(section: Section, old: File | None, new: File | None) -> bool:
    """Whether the section's kind and its mode lines say what happens."""
    if (old is None) != (section.kind == "create") or (new is None) != (section.kind == "delete"):
        return False
    if old is not None and section.old_mode not in (None, old.mode):
        return False
    if new is None:
        return True
    stays = old.mode if old is not None else new.mode
    return new.mode == (stays if section.new_mode is None else section.new_mode)


def _places(hunks: Sequence[Hunk], old: File | None, new: File | None) -> list[int] | None:
    """The 0-based lines at which the hunks turn `old` into `new`; None where there are none.

    Both sides are walked at once: up to a hunk they are equal, so it stands where the sides begin
    to differ, or above that where its change could slide.
    """
    before = split_lines(old.data) if old else []
    after = split_lines(new.data) if new else []
    starts: list[int] = []
    i = j = 0
    for hunk in hunks:
        equal = 0
        limit = min(len(before) - i, len(after) - j)
        while equal < limit and before[i + equal] == after[j + equal]:
            equal += 1
        lead, _ = context(hunk)
        for skip in range(equal - lead, -1, -1):
            here, there = i + skip, j + skip
            if (
                tuple(before[here : here + len(hunk.old)]) == hunk.old
                and tuple(after[there : there + len(hunk.new)]) == hunk.new
            ):
                break
        else:
            return None
        starts.append(here)
        i, j = here + len(hunk.old), there + len(hunk.new)
    return starts if before[i:] == after[j:] else None


def _rewrite_hunks(lines: list[bytes], hunks: Sequence[Hunk], starts: Sequence[int]) -> None:
    net = 0
    for hunk, start in zip(hunks, starts, strict=True):
        line = lines[hunk.patch_line - 1]
        stated = _HUNK.match(line)
        if stated is not None:
            old = start + (1 if hunk.old_count else 0)
            new = start + net + (1 if hunk.new_count else 0)
            head = b"@@ -%d%s +%d%s @@" % (old, stated[1] or b"", new, stated[2] or b"")
            lines[hunk.patch_line - 1] = head + line[stated.end() :]
        net += hunk.net


def _rewrite_index(
    lines: list[bytes], section: Section, old: File | None, new: File | None
) -> None:
    """Full ids in the section's index line, where it has one."""
    first = section.patch_line - 1
    end = section.hunks[0].patch_line - 1 if section.hunks else len(lines)
    for at in range(first, end):
        if at > first and lines[at].startswith(b"diff --git "):
            return
        stated = _INDEX.match(lines[at])
        if stated is not None:
            ids = f"index {old.oid if old else NO_ID}..{new.oid if new else NO_ID}"
            lines[at] = ids.encode() + lines[at][stated.end() :]
            return
