"""Lint: what in a patch file is wrong, risky or noise, and the part that a tool may mend.

`fix_patch` changes only what cannot change the effect. That is checked, not believed: a step
whose result does not read as the same change is not taken. The one exception is a file that
every reader refuses for its counts, which has no effect to keep (`lint_hunks.fix_counts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from patchkit.engine.model import REGULAR, Section
from patchkit.series import lint_file, lint_header, lint_hunks, lint_sections
from patchkit.series.folder import Series
from patchkit.series.lint_view import Lint, View

__all__ = ["RULES", "Lint", "fix_patch", "lint_patch", "lint_series"]

RULES = {
    "byte-order-mark": "the file begins with U+FEFF",
    "line-endings": "CRLF where it is not content, or no line end at the end",
    "here-document": "shell lines that wrote the patch are still around it",
    "trailing-junk": "something stands behind the last hunk",
    "signature": "a mail signature ends the file",
    "several-mails": "more than one mail in a file",
    "junk-between": "something stands between two sections",
    "left-out": "a file of one side whose content is not in the patch",
    "surplus-context": "context behind a hunk that its header does not count",
    "blank-context": "empty context lines without their space",
    "line-numbers": "new line numbers that do not follow from the old ones",
    "short-context": "a hunk that GNU patch ties to the end of the file",
    "absolute-path": "a name that begins with /",
    "backslash": "a name with backslashes for slashes",
    "two-names": "an edit whose two names are different files",
    "index-line": "an index line that says a side does not exist",
    "mode-line": "a new or deleted file without its mode line",
    "quilt-reads-otherwise": "a section that quilt reads differently",
    "text-like-a-diff": "text in which GNU patch sees a diff",
    "header": "a field is missing, or would not survive git am",
    "unlisted": "a patch file that no line of the series names",
}
"""Rules and what they are about. Beside them every finding of the parser is an error."""

_FIXES: tuple[Callable[[View], bytes], ...] = (
    lint_hunks.fix_counts,
    lint_file.fix_mark,
    lint_hunks.fix_surplus,
    lint_file.fix_here_document,
    lint_file.fix_tail,
    lint_file.fix_line_ends,
    lint_hunks.fix_blank_context,
    lint_sections.fix_sections,
    lint_header.fix_header,
)


def lint_patch(data: bytes, name: str) -> tuple[Lint, ...]:
    """Everything to say about one patch file, by line of the patch.

    name: the file's name, for messages. A file that the parser refuses has its findings as
    errors; rules that need a good file are then silent.
    """
    view = View(data, name)
    found = [
        *lint_hunks.find(view),
        *lint_file.find(view),
        *lint_sections.find(view),
        *lint_header.find(view),
    ]
    return tuple(sorted(found, key=lambda lint: lint.where.patch_line or 0))


def fix_patch(data: bytes, name: str) -> bytes:
    """The file with everything mended that `lint_patch` says --fix would; else the same bytes."""
    view = View(data, name)
    for fix in _FIXES:
        fixed = View(fix(view), name)
        if fixed.data != view.data and (view.scan.findings or _same_effect(view, fixed)):
            view = fixed
    return view.data


def lint_series(series: Series) -> tuple[Lint, ...]:
    """Everything to say about the patches of a folder, in series order; then unlisted files."""
    return tuple(_series(series))


def _series(series: Series) -> Iterator[Lint]:
    for finding in series.refused:
        yield Lint(finding.name, finding.message, finding.where, "error", next=finding.next)
    for patch in series.patches:
        yield from lint_patch(patch.data, patch.name)
    for finding in series.findings:
        if finding.note and finding.where.patch in series.unlisted:
            yield Lint("unlisted", finding.message, finding.where, next=finding.next)


def _same_effect(before: View, after: View) -> bool:
    """Whether two files read as the same change, without a finding."""
    if before.scan.findings or after.scan.findings:
        return False
    return [_effect(s) for s in before.sections] == [_effect(s) for s in after.sections]


def _effect(section: Section) -> tuple[object, ...]:
    """What a section does, without what no reader acts on (index ids, headings)."""
    new_mode = section.new_mode
    if section.kind == "create":
        new_mode = new_mode or REGULAR
    hunks = [
        (h.old_start, h.old_count, h.new_start, h.new_count, h.tags, h.contents)
        for h in section.hunks
    ]
    names = (section.old_path, section.new_path, section.bare_names)
    return (section.kind, *names, new_mode, section.git, hunks)
