"""What a patch of one series changes that its partner in another does not: hunk by hunk.

Numbers of @@ lines, ids of index lines, Last-Update and Rebased-From are no difference: they
follow from where a patch stands. What is left is what a person has to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from patchkit.derive.proofs import ORIGIN
from patchkit.engine.diff import make_hunks
from patchkit.engine.hunk_text import body_lines
from patchkit.engine.model import Hunk, Patch, Section
from patchkit.engine.text import split_lines
from patchkit.series.header import Header

FOLLOWS = ("Last-Update", ORIGIN)
"""Header fields that change whenever a patch is carried."""
CONTEXT = 3


@dataclass(frozen=True)
class Change:
    """One thing that differs. file: its path in the new patch (in the old one where it is only
    there), "" for the header. old, new: numbers of the hunk in its file in either patch, 0 for
    none, and for what is no hunk. lines: a diff of the two hunks' lines, each with " ", "-" or "+"
    before the patch's own sign.
    """

    file: str
    old: int
    new: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """Two versions of a patch. renamed: old -> new path of files that are called otherwise."""

    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.changes and not self.renamed


def compare(old: Patch, new: Patch, old_header: Header, new_header: Header) -> Compared:
    """All that differs between two versions of one patch."""
    changes: list[Change] = []
    words = _diff(_header_lines(old_header), _header_lines(new_header))
    if words:
        changes.append(Change("", 0, 0, words))
    renamed: list[tuple[str, str]] = []
    for one, two in _sections(old.sections, new.sections):
        if one is not None and two is not None and one.path != two.path:
            renamed.append((_shown(one), _shown(two)))
        changes += _section(one, two)
    return Compared(tuple(changes), tuple(renamed))


def _header_lines(header: Header) -> list[bytes]:
    lines = [f"From: {header.author}", f"Date: {header.date}", f"Subject: {header.subject}"]
    ignored = {name.lower() for name in FOLLOWS}
    lines += [f"{f.name}: {f.value}" for f in header.fields if f.name.lower() not in ignored]
    lines += ["", *header.body.split("\n")]
    return split_lines(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))


def _shown(section: Section) -> str:
    """The path in the tree: without the a/ or b/ that git puts before it."""
    path = section.path
    return path[2:] if section.git and not section.bare_names and path[:2] in ("a/", "b/") else path


def _sections(
    old: Sequence[Section], new: Sequence[Section]
) -> list[tuple[Section | None, Section | None]]:
    """Sections of the same file side by side, in the new order; those without a partner alone."""
    partner: dict[int, int] = {}  # place in new -> place in old
    keys: tuple[Callable[[Section], object], ...] = (
        lambda s: s.path,
        lambda s: s.path.rpartition("/")[2],
        lambda s: tuple((h.tags, h.contents) for h in s.hunks),
    )
    for key in keys:
        for at, section in enumerate(new):
            if at in partner:
                continue
            free = (i for i in range(len(old)) if i not in partner.values())
            found = next((i for i in free if key(old[i]) == key(section)), None)
            if found is not None:
                partner[at] = found
    rows: list[tuple[Section | None, Section | None]] = [
        (old[partner[at]] if at in partner else None, section) for at, section in enumerate(new)
    ]
    return rows + [(s, None) for i, s in enumerate(old) if i not in partner.values()]


def _section(one: Section | None, two: Section | None) -> list[Change]:
    shown = two if two is not None else one
    assert shown is not None
    file = _shown(shown)
    out: list[Change] = []
    words = _diff(_head(one), _head(two))
    if words:
        out.append(Change(file, 0, 0, words))
    for before, after in _hunks(one.hunks if one else (), two.hunks if two else ()):
        mine = _lines(one.hunks[before]) if one is not None and before is not None else []
        other = _lines(two.hunks[after]) if two is not None and after is not None else []
        old = before + 1 if before is not None else 0
        new = after + 1 if after is not None else 0
        out.append(Change(file, old, new, _diff(mine, other)))
    return out


def _head(section: Section | None) -> list[bytes]:
    """What a section says besides its hunks: kind, modes and binary contents."""
    if section is None:
        return []
    words = [section.kind]
    words += [f"old mode {section.old_mode:o}"] if section.new_mode and section.old_mode else []
    words += [f"new mode {section.new_mode:o}"] if section.new_mode else []
    lines = [f"{word}\n".encode() for word in words]
    if section.binary:
        lines += [x for x in split_lines(section.raw) if not x.startswith((b"index ", b"diff "))]
    return lines


def _hunks(old: Sequence[Hunk], new: Sequence[Hunk]) -> list[tuple[int | None, int | None]]:
    """Pairs of places of hunks that differ; equal ones are left out, a lone one has None."""
    one, two = [b"".join(_lines(h)) for h in old], [b"".join(_lines(h)) for h in new]
    rows: list[tuple[int | None, int | None]] = []
    for gap in make_hunks(one, two, 0):
        start = gap.old_start - 1 if gap.old_count else gap.old_start
        first = gap.new_start - 1 if gap.new_count else gap.new_start
        for i in range(max(gap.old_count, gap.new_count)):
            rows.append(
                (
                    start + i if i < gap.old_count else None,
                    first + i if i < gap.new_count else None,
                )
            )
    return rows


def _lines(hunk: Hunk) -> list[bytes]:
    """The hunk's lines with their signs, its heading first; no numbers."""
    head = b"@@" + (b" " + hunk.heading if hunk.heading else b"") + b"\n"
    return [head, *body_lines(replace(hunk, patch_line=0))]


def _diff(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[str, ...]:
    out: list[str] = []
    for number, hunk in enumerate(make_hunks(old, new, CONTEXT)):
        if number:
            out.append(" …")
        for tag, line in hunk.lines:
            out.append((tag + line).decode("utf-8", "surrogateescape").rstrip("\r\n"))
    return tuple(out)
