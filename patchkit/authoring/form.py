"""One patch in its form: kept but for numbers, written anew, or found to be in form already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.authoring.headers import header_bytes, kept_header
from patchkit.derive.carry import Files, same
from patchkit.engine.apply import EXACT, apply_patch
from patchkit.engine.merge import is_binary
from patchkit.engine.model import File, Patch, Section, Tree
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Header
from patchkit.series.quilt import Entry
from patchkit.series.renumber import renumber
from patchkit.series.writer import write_diff

UNCHANGED = "unchanged"
RENUMBERED = "renumbered"
REWRITTEN = "context rewritten"
REFRESHED = "refreshed"
HEADER = "header changed"
NEW = "new"


@dataclass(frozen=True)
class Row:
    """What became of one patch, for the table. said: what was found out about it."""

    patch: str
    state: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """One patch of the new series. changes: what it does to the tree before it."""

    entry: Entry
    patch: Patch
    header: Header
    changes: Mapping[str, File | None]


@dataclass(frozen=True)
class Made:
    """What `Builder.write` was asked for."""

    name: str
    header: Header
    changes: Mapping[str, File | None]
    guard: str | None
    renames: Mapping[str, str]
    like: int | None
    given: Patch | None
    in_place: bool


def moved(
    tree: Tree,
    entry: Entry,
    patch: Patch,
    header: Header,
    before: Files,
    changes: Mapping[str, File | None],
    renames: Mapping[str, str],
) -> tuple[Built, str]:
    """The patch at its new lines in `tree`: only numbers and ids where that can be, else anew.

    before: the tree that it was made for. changes: what it makes of `tree`. Raises Refused(no-op)
    where that is nothing, and what the writer refuses.
    """
    root = Root(entry.strip)
    data = None if entry.reverse else renumber(patch, tree, changes, root)
    if data is not None:
        again = parse(data, entry.patch)
        outcome = apply_patch(tree, again, EXACT, root)
        if outcome.state == "applied" and equal(outcome.changes, changes):
            state = UNCHANGED if data == patch.data else RENUMBERED
            return Built(entry, again, header, changes), state
    text = text_paths(patch, root, before)
    diff = write_diff(tree, changes, renames=renames, text=text)
    if not diff:
        raise Refused(Finding("no-op", "it changes nothing any more", Where(patch=entry.patch)))
    plain = Entry(entry.patch, 1, False, entry.guard)
    anew = parse(kept_header(patch, header, None) + diff, entry.patch)
    return Built(plain, anew, header, changes), REWRITTEN


def is_in_form(tree: Tree, made: Made) -> bool:
    """Whether the file that came may stay as it is: nothing but its hunks is another's choice.

    Numbers and ids are right, the header is canonical, and so is all of each section but how its
    change is cut into hunks.
    """
    given = made.given
    if given is None or renumber(given, tree, made.changes) != given.data:
        return False
    try:
        lead = header_bytes(made.header, None, None)
        plain = write_diff(tree, made.changes, renames=made.renames)
    except Refused:
        return False
    wanted = parse(lead + plain, made.name)
    return (
        given.header.rstrip(b"\n") == lead.rstrip(b"\n")
        and given.data == given.header + b"".join(s.raw for s in given.sections)
        and [_lead(s) for s in given.sections] == [_lead(s) for s in wanted.sections]
    )


def headed(patch: Patch, header: Header, name: str) -> Patch:
    """The patch under another header; its diff keeps every byte."""
    return parse(header_bytes(header, None, None) + patch.data[len(patch.header) :], name)


def equal(one: Mapping[str, File | None], two: Mapping[str, File | None]) -> bool:
    """Whether two changes are the same."""
    return one.keys() == two.keys() and all(same(one[path], two[path]) for path in one)


def _lead(section: Section) -> bytes:
    """A section's lines above its first hunk."""
    return section.raw.partition(b"\n@@ ")[0]


def text_paths(patch: Patch, root: Root, before: Files) -> set[str]:
    """Files with a NUL that the patch edits as text: they stay text."""
    out = set()
    for section in patch.sections:
        try:
            paths = target_paths(section, root)
        except ValueError:
            continue
        for path in paths:
            file = before.get(path) if path is not None else None
            if path is not None and section.hunks and file is not None and is_binary(file.data):
                out.add(path)
    return out


def no_op(name: str, count: int) -> Finding:
    """That a patch made by a person changes nothing."""
    return Finding(
        "no-op",
        "the patch would change nothing",
        Where(patch=name),
        expected="at least one file that differs from the tree before the patch",
        found=f"{count} file(s), none of which differs" if count else "no file that differs",
        next="edit a file of the work tree; git add makes a new one part of the patch",
    )


def no_longer(finding: Finding) -> Finding:
    """A no-op of a patch that is carried over, said so."""
    if finding.name != "no-op":
        return finding
    return Finding(
        "no-op",
        f"{finding.where.patch} would change nothing any more: "
        "all that it does is in the tree before it now",
        finding.where,
        expected="each change in one patch",
        found="no file that differs",
        next=f"patchkit drop {finding.where.patch} first",
    )
