"""Rules about file names and header lines of sections: what another reader reads in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchkit.engine.model import Section
from patchkit.engine.parse import names_of
from patchkit.engine.parse_hunks import is_file_header
from patchkit.engine.quote import show_line, show_path
from patchkit.series.lint_view import Lint, View

_INDENTED = re.compile(rb"[ \tX]+(?:diff --git |--- \S.*\n[ \tX]+\+\+\+ \S)")
_KEYWORD = re.compile(rb"(?:Index|Prereq):[ \t]*\S")


def find(view: View) -> Iterator[Lint]:
    """All findings of this module's rules."""
    yield from _text_like_a_diff(view)
    for section in view.sections:
        at = section.patch_line - 1
        for rule, message, fix in _section(section):
            yield Lint(rule, message, view.at(at, section), fix=fix, next=_NEXT.get(rule, ""))


_NEXT = {
    "absolute-path": "patchkit import (finds the root)",
    "two-names": "patchkit import (or edit the names)",
    "backslash": "write the names with /",
    "quilt-reads-otherwise": "patchkit refresh",
}


def _section(section: Section) -> Iterator[tuple[str, str, str]]:
    names = names_of(section)
    absolute = [name for name in names if name.startswith("/")]
    if absolute:
        message = f"the name {show_path(absolute[0])} is absolute, so no -p level is sure"
        yield "absolute-path", message, ""
    if any("\\" in name and "/" not in name for name in names):
        yield "backslash", "the name has backslashes for slashes: one long file name here", ""
    if _other_file(section):
        shown = " and ".join(show_path(name) for name in names)
        message = f"the two sides have different names ({shown}): each reader takes its own"
        yield "two-names", message, ""
    if _forged_index(section):
        message = "the index line says that one side does not exist: quilt takes it at its word"
        yield "index-line", message, "takes the line away"
    if _lacks_mode(section):
        word = "new" if section.kind == "create" else "deleted"
        message = f'the git header lacks its "{word} file mode" line: git looks for dev/null'
        yield "mode-line", message, "adds the line"
    if section.git and not section.hunks and not section.bare_names and " " in section.path:
        message = "only the diff --git line names the file, and quilt cuts it at a space"
        yield "quilt-reads-otherwise", message, ""


def _other_file(section: Section) -> bool:
    """Two names of an edit that differ in more than the first part."""
    if section.kind != "modify" or section.old_path is None or section.new_path is None:
        return False
    old, new = section.old_path, section.new_path
    return old != new and old.partition("/")[2] != new.partition("/")[2]


def _forged_index(section: Section) -> bool:
    """Zeros for a side that has lines: made by hand or by a tool that does not know."""
    if not section.git or not section.old_id or section.kind in ("create", "delete"):
        return False
    zeros = not section.old_id.strip("0") or not section.new_id.strip("0")
    return zeros and bool(section.hunks)


def _lacks_mode(section: Section) -> bool:
    if not section.git or section.kind not in ("create", "delete"):
        return False
    return b" file mode " not in section.raw.partition(b"\n@@")[0]


def fix_sections(view: View) -> bytes:
    """Without index lines that lie, with the mode lines that git needs."""
    if view.scan.findings:
        return view.data
    lines = list(view.lines)
    for section in reversed(view.sections):
        at = section.patch_line - 1
        if _lacks_mode(section):
            word = b"new" if section.kind == "create" else b"deleted"
            end = b"\r\n" if lines[at].endswith(b"\r\n") else b"\n"
            lines.insert(at + 1, word + b" file mode 100644" + end)
        elif _forged_index(section):
            i = at + 1
            while not lines[i].startswith((b"index ", b"@@")):
                i += 1
            if lines[i].startswith(b"index "):
                del lines[i]
    return view.with_lines(lines)


def _text_like_a_diff(view: View) -> Iterator[Lint]:
    """Text above the diff in which GNU patch, and so quilt, may see a diff begin."""
    lines = view.lines
    for i in range(min(view.scan.first, len(lines))):
        pair = b"".join(lines[i : i + 2])
        if _INDENTED.match(pair) or _KEYWORD.match(pair) or is_file_header(lines, i):
            shown = show_line(lines[i], 60)
            message = f"the text above the diff looks like one to GNU patch and quilt: {shown}"
            yield Lint("text-like-a-diff", message, view.at(i), next="put > before its lines")
            return
