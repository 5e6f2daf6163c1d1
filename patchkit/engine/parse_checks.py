"""What a section that reads well may still not be: judged before any tree is seen."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.engine.model import GITLINK, Hunk, Section
from patchkit.engine.parse_names import without_prefix
from patchkit.engine.paths import raw_escape
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where

REMAKE = "patchkit refresh (or the diff made anew, with three lines of context)"


def names_of(section: Section) -> tuple[str, ...]:
    """Every file name that a section gives, as written, /dev/null left out."""
    names = (section.old_path, section.new_path)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def shown_name(section: Section) -> str:
    """The section's file for a message's `Where`: without a/ or b/."""
    return shown_path(section.path, section.bare_names)


def shown_path(name: str, bare: bool) -> str:
    """A name for a message's `Where`: without a/ or b/, unless it never had one (bare)."""
    return name if bare else without_prefix(name)


def check_section(section: Section) -> Iterator[Finding]:
    """Findings about one section; the patch's name is filled in by the caller."""
    yield from _names(section)
    if section.binary:
        yield _binary(section, _where(section))
    elif GITLINK in (section.old_mode, section.new_mode):
        yield Finding(
            "unsupported",
            "it changes a submodule, which only git can",
            _where(section),
            next="patch the files of the submodule, or move the pin",
        )
    elif not section.hunks:
        if section.kind == "modify" and (
            section.new_mode is None or section.old_mode == section.new_mode
        ):
            yield Finding(
                "no-op",
                "its header is followed by no change: it changes nothing, or the file was cut",
                _where(section),
                expected="a hunk (@@ -…), a mode, a rename, a new or a deleted file",
                found="none of them",
                next="remove the header, or get the whole patch",
            )
    elif section.kind in ("create", "delete"):
        yield from _whole_file(section)
    else:
        yield from _order(section)
        yield from _context(section)


def _where(section: Section) -> Where:
    return Where(file=shown_name(section), patch_line=section.patch_line)


def _names(section: Section) -> Iterator[Finding]:
    for name in names_of(section):
        reason = raw_escape(name, bare=section.bare_names)
        if reason:
            yield Finding(
                "path-escape",
                f"the name {show_path(name)} is refused: {reason}",
                Where(file=name, patch_line=section.patch_line),
                expected="a path inside the tree",
                found=show_path(name),
                next="do not use this patch before you know why it names such a file",
            )


def _binary(section: Section, where: Where) -> Finding:
    if section.binary == "no-content":
        return Finding(
            "binary-unsupported",
            "a binary file differs and the patch has no content for it",
            where,
            expected="text hunks",
            found='"Binary files … differ": no content',
            next="leave the file out of the patch, or bring it another way",
        )
    return Finding(
        "binary-unsupported",
        "it is a git binary patch, which quilt and GNU patch cannot apply",
        where,
        expected="text hunks",
        found=f"GIT binary patch ({section.binary})",
        next="leave the file out of the patch, or bring it another way",
    )


def _whole_file(section: Section) -> Iterator[Finding]:
    """A new file has no old lines, a deleted one no new lines, and each has one hunk."""
    new = section.kind == "create"
    word, side = ("new", "old") if new else ("deleted", "new")
    for number, hunk in enumerate(section.hunks, 1):
        count = hunk.old_count if new else hunk.new_count
        where = Where(None, shown_name(section), number, None, hunk.patch_line)
        if not hunk.tags:
            yield _no_change(where)
        elif count:
            yield Finding(
                "corrupt-hunk-count",
                f"the file is {word}, so the hunk cannot have {side} lines",
                where,
                expected=f"0 {side} lines",
                found=f"{count}",
                next="make the diff anew",
            )
        elif number > 1:
            yield Finding(
                "overlapping-hunks",
                f"the file is {word}, so it has one hunk: hunk {number} stands over hunk 1",
                where,
                next="make the diff anew",
            )


def _order(section: Section) -> Iterator[Finding]:
    """Hunks stand in the file's order and none begins before the last one ends."""
    last_start = last_end = 0
    for number, hunk in enumerate(section.hunks, 1):
        start = hunk.old_start + (hunk.old_count == 0)
        if start < last_end:
            above = section.hunks[number - 2]
            where = Where(None, shown_name(section), number, None, hunk.patch_line)
            if start >= last_start:
                yield Finding(
                    "overlapping-hunks",
                    f"hunk {number} begins at line {hunk.old_start}, "
                    f"inside hunk {number - 1}, which ends at line {last_end - 1}",
                    where,
                    expected=f"line {last_end} or later",
                    found=f"line {hunk.old_start}",
                    next=REMAKE,
                )
            else:
                yield Finding(
                    "hunks-out-of-order",
                    f"hunk {number} stands above hunk {number - 1} in the file and below it "
                    "in the patch; GNU patch and quilt refuse that",
                    where,
                    expected=f"after line {above.old_start}",
                    found=f"line {hunk.old_start}",
                    next=REMAKE,
                )
        last_start, last_end = start, start + hunk.old_count


def _context(section: Section) -> Iterator[Finding]:
    """Each hunk changes something, and has lines by which its place can be known."""
    alone = len(section.hunks) == 1
    for number, hunk in enumerate(section.hunks, 1):
        size = len(hunk.tags)
        context = hunk.old_count + hunk.new_count - size
        if context == size:
            yield _no_change(Where(None, shown_name(section), number, None, hunk.patch_line))
        elif context == 0 and not (alone and _may_be_whole(hunk)):
            yield Finding(
                "no-context",
                f"hunk {number} has no line of context, so its place cannot be known",
                Where(None, shown_name(section), number, None, hunk.patch_line),
                expected="context lines above and below the change",
                found="diff -U0",
                next=REMAKE,
            )


def _may_be_whole(hunk: Hunk) -> bool:
    """A hunk from the top: it is the whole file, or it will not hold. (One that adds below line 1
    states that line too, and is not from the top.)"""
    return hunk.old_start + (hunk.old_count == 0) <= 1


def _no_change(where: Where) -> Finding:
    return Finding(
        "no-op",
        f"hunk {where.hunk} changes nothing: it has only context",
        where,
        expected='lines that begin with "+" or "-"',
        found="none",
        next="remove the hunk, or get the whole patch",
    )
