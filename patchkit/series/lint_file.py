"""Rules about a patch file as a whole: line ends, and what stands around the diff."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchkit.engine.parse_hunks import is_signature
from patchkit.engine.parse_prose import here_document
from patchkit.engine.quote import show_line
from patchkit.series.lint_view import BOM, Lint, View, body_indices

_POSTMARK = re.compile(rb"From [0-9a-f]{7,64} ")
_DIFF_LIKE = re.compile(
    rb"\s*(?:--- |\+\+\+ |\*\*\* |@@|diff |Index:|Prereq:|Binary files |\d+(?:,\d+)?[acds]\d*)"
)
"""Lines in which GNU patch, which also takes indented diffs, may see a diff begin."""
_FURNITURE = re.compile(rb"(?:diff |Index: |Only in |={20,}|From [0-9a-f]{7,64} |\s*\Z)")
"""What diff tools themselves write between sections."""


def find(view: View) -> Iterator[Lint]:
    """All findings of this module's rules."""
    yield from _mark(view)
    yield from _line_ends(view)
    yield from _here_document(view)
    if view.sections and not view.scan.findings:
        yield from _tail(view)
        yield from _between(view)


# ------------------------------------------------------------------ byte order mark


def _mark(view: View) -> Iterator[Lint]:
    if view.bom:
        message = "the file begins with a byte order mark, which hides its first line from git"
        fix = "takes the mark away" if fix_mark(view) != view.data else ""
        yield Lint("byte-order-mark", message, view.at(0), fix=fix)


def fix_mark(view: View) -> bytes:
    """Without the mark, where the line that it hides says nothing that changes the effect."""
    if not view.bom or not view.sections:
        return view.data
    first = view.sections[0]
    plain = first.kind == "modify" and first.hunks and first.new_mode is None
    hidden = view.scan.first > 0 or plain
    return view.data.removeprefix(BOM) if hidden else view.data


# ------------------------------------------------------------------ line ends


def _line_ends(view: View) -> Iterator[Lint]:
    lines = view.lines
    if not lines or not view.sections:
        return
    crlf = [i for i, line in enumerate(lines) if line.endswith(b"\r\n")]
    if crlf and len(crlf) == sum(line.endswith(b"\n") for line in lines):
        yield Lint(
            "line-endings",
            "every line ends in CRLF: git reads the CR as content, GNU patch takes it away",
            view.at(0),
            next="patchkit refresh (compares with the files)",
        )
    else:
        foreign = _foreign_cr(view)
        if foreign:
            fix = "takes the CR away" if fix_line_ends(view) != view.data else ""
            yield Lint(
                "line-endings",
                f"{len(foreign)} line(s) outside the hunks end in CRLF, the first is this one",
                view.at(foreign[0]),
                fix=fix,
            )
    if not lines[-1].endswith(b"\n") and view.scan.last < len(lines):
        fix = "adds the line end"
        yield Lint(
            "line-endings", "the last line has no line end", view.at(len(lines) - 1), fix=fix
        )


def _foreign_cr(view: View) -> list[int]:
    """Lines outside all hunk bodies that end in CRLF."""
    inside = {i for s in view.sections for a, b, _ in body_indices(s) for i in range(a, b)}
    return [i for i, x in enumerate(view.lines) if x.endswith(b"\r\n") and i not in inside]


def fix_line_ends(view: View) -> bytes:
    """No CR outside the hunks where none of them holds a CR; the last line ended.

    GNU patch decides by the header lines whether to strip CRs from the bodies, so header lines
    of a patch with CRs in its bodies stay as they are.
    """
    if view.scan.findings or not view.sections:
        return view.data
    lines = list(view.lines)
    contents = (c for s in view.sections for h in s.hunks for c in h.contents)
    if not any(content.endswith((b"\r\n", b"\r")) for content in contents):
        for i in _foreign_cr(view):
            lines[i] = lines[i][:-2] + b"\n"
    if not lines[-1].endswith(b"\n") and view.scan.last < len(lines):
        lines[-1] += b"\n"
    return view.with_lines(lines)


# ------------------------------------------------------------------ around the diff


def _here_document(view: View) -> Iterator[Lint]:
    for line, text in here_document(view.lines, view.scan.first, view.scan.last):
        message = f"a shell line that wrote the patch is still around it: {text}"
        fix = "takes the line away" if fix_here_document(view) != view.data else ""
        yield Lint("here-document", message, view.at(line - 1), fix=fix)


def fix_here_document(view: View) -> bytes:
    """Without the line that opens the here-document; its end goes with the tail."""
    around = here_document(view.lines, view.scan.first, view.scan.last)
    if not around or view.scan.findings:
        return view.data
    opened = around[0][0] - 1
    return view.with_lines(view.lines[:opened] + view.lines[opened + 1 :])


def _tail(view: View) -> Iterator[Lint]:
    last = view.scan.last
    tail = view.lines[last:]
    fix = "takes it away" if fix_tail(view) != view.data else ""
    if not any(line.strip() for line in tail):
        if tail:
            yield Lint("trailing-junk", "blank lines end the file", view.at(last), "note", fix)
        return
    first = next(i for i, line in enumerate(tail) if line.strip()) + last
    if is_signature(view.lines, first):
        message = "a mail signature with a tool's version ends the file: it changes with the tool"
        yield Lint("signature", message, view.at(first), "note", fix)
        return
    told = [line - 1 for line, _ in here_document(view.lines, view.scan.first, view.scan.last)]
    if first in told or any(first == surplus for surplus, _ in view.scan.surplus):
        return
    message = f"what stands behind the last hunk is no part of the patch: {_shown(view, first)}"
    yield Lint("trailing-junk", message, view.at(first), fix=fix)


def fix_tail(view: View) -> bytes:
    """Nothing behind the last hunk; only where no reader could see a diff in it."""
    last = view.scan.last
    if view.scan.findings or not view.sections or last >= len(view.lines):
        return view.data
    tail = view.lines[last:]
    signature = is_signature(tail, 0)
    if any(_DIFF_LIKE.match(line) for line in tail[signature * 2 :]):
        return view.data
    return view.with_lines(view.lines[:last])


def _between(view: View) -> Iterator[Lint]:
    """Lines between two sections that no diff tool writes, and several mails in one file."""
    lines = view.lines
    mails = [i for i, line in enumerate(lines[: view.scan.last]) if _POSTMARK.match(line)]
    inside = {i for s in view.sections for a, b, _ in body_indices(s) for i in range(a, b)}
    mails = [i for i in mails if i not in inside]
    if len(mails) > 1:
        yield Lint(
            "several-mails",
            f"{len(mails)} mails stand in one file",
            view.at(mails[1]),
            next="patchkit import (makes one patch of each)",
        )
        return
    starts = [s.patch_line - 1 for s in view.sections]
    surplus = {i for a, b in view.scan.surplus for i in range(a, b)}
    for section, start in zip(view.sections, starts[1:], strict=False):
        end = section.patch_line - 1 + section.patch_lines
        for i in range(end, start):
            if lines[i].startswith(b"Only in "):
                message = f"the content of this file is not in the patch: {_shown(view, i)}"
                yield Lint("left-out", message, view.at(i), next="make the diff with -N")
            elif i not in surplus and not _FURNITURE.match(lines[i]):
                message = f"a line between two files is no part of the patch: {_shown(view, i)}"
                yield Lint("junk-between", message, view.at(i))
                break


def _shown(view: View, index: int) -> str:
    return show_line(view.lines[index], 60)
