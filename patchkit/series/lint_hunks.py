"""Rules about hunks: their counts, their context, and what GNU patch makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patchkit.engine.fuzz import context
from patchkit.engine.hunk_text import renumbered
from patchkit.engine.model import Hunk
from patchkit.engine.parse import Scan, scan
from patchkit.engine.parse_report import Mend
from patchkit.engine.recount import rewritten
from patchkit.errors import Finding
from patchkit.series.lint_view import Lint, View, body_indices

_GNU_FILLS = 2
"""Context lines that GNU patch supplies at the end of a file: git calls that corrupt."""


def find(view: View) -> Iterator[Lint]:
    """All findings of this module's rules; the parser's own findings are among them."""
    fixed = not view.scan.findings or fix_counts(view) != view.data
    for finding in view.scan.findings:
        yield _error(finding, fixed)
    for first, end in view.scan.surplus:
        lines = f"{end - first} line(s)"
        message = f"{lines} of surplus context: the hunk above is complete by its header"
        yield Lint("surplus-context", message, view.at(first), fix="takes the lines away")
    if not view.scan.findings:
        yield from _blank_context(view)
        yield from _numbers(view)
        yield from _short_context(view)


def _error(finding: Finding, fixed: bool) -> Lint:
    message = finding.message
    if finding.expected:
        message += f" (expected {finding.expected}, found {finding.found})"
    fix = "corrects the counts" if fixed and finding.name == "corrupt-hunk-count" else ""
    return Lint(finding.name, message, finding.where, "error", fix, finding.next)


# ------------------------------------------------------------------ counts


def fix_counts(view: View) -> bytes:
    """Corrected counts, where no reader takes the file as it is and none can be lost by it.

    A file that ends inside a hunk may have been cut off, so it stays refused, but for the
    context lines that GNU patch supplies there, and for a last line end that is missing behind
    a line of the old file, where a wrong guess cannot be applied. Lines left over behind a
    hunk stay too: git and GNU patch take such a file, and lose them.
    """
    names = {finding.name for finding in view.scan.findings}
    if names != {"corrupt-hunk-count"}:
        return view.data
    found = scan(view.data, view.name, recount=True)
    if found.findings or not found.mends:
        return view.data
    mends = [_safe(view, mend) for mend in found.mends]
    if None in mends:
        return view.data
    safe = {m.start: m for m in mends if m is not None}
    sections = tuple(
        replace(s, hunks=tuple(_of(safe, hunk) for hunk in s.hunks)) for s in found.patch.sections
    )
    patch = replace(found.patch, sections=sections)
    return rewritten(view.data, Scan(patch, (), tuple(safe.values())))


def _of(mends: dict[int, Mend], hunk: Hunk) -> Hunk:
    mend = mends.get(hunk.patch_line - 1)
    return replace(mend.hunk, new_start=hunk.new_start) if mend else hunk


def _safe(view: View, mend: Mend) -> Mend | None:
    """The mend as --fix may make it; None where only a person can say what was meant."""
    at_end = mend.end == len(view.lines)
    if mend.what in ("signature", "header") or (mend.what == "short" and not at_end):
        return mend
    if mend.what == "cut":
        return mend if not mend.hunk.tags.endswith(b"+") else None
    if mend.what == "short" and view.data.endswith(b"\n"):
        return _filled(view, mend)
    return None


def _filled(view: View, mend: Mend) -> Mend | None:
    """The hunk with the blank context that was cut off its end, as GNU patch reads it."""
    finding = next(f for f in view.scan.findings if f.where.patch_line == mend.start + 1)
    stated = [int(word) for word in finding.expected.split() if word.isdigit()][:2]
    missing = stated[0] - mend.hunk.old_count
    if missing != stated[1] - mend.hunk.new_count or not 0 < missing <= _GNU_FILLS:
        return None
    hunk = replace(
        mend.hunk,
        old_count=stated[0],
        new_count=stated[1],
        tags=mend.hunk.tags + b" " * missing,
        contents=mend.hunk.contents + (b"\n",) * missing,
    )
    return replace(mend, hunk=hunk)


def fix_surplus(view: View) -> bytes:
    """Without the context lines that no hunk counts."""
    if view.scan.findings:
        return view.data
    gone = {i for first, end in view.scan.surplus for i in range(first, end)}
    return view.with_lines([line for i, line in enumerate(view.lines) if i not in gone])


# ------------------------------------------------------------------ context


def _blanks(view: View) -> list[int]:
    """Body lines that are empty: context whose space was removed."""
    bodies = [body for s in view.sections for body in body_indices(s)]
    return [i for a, b, _ in bodies for i in range(a, b) if view.lines[i] == b"\n"]


def _blank_context(view: View) -> Iterator[Lint]:
    blanks = _blanks(view)
    if blanks:
        message = f"{len(blanks)} empty context line(s) lost their space to an editor"
        yield Lint("blank-context", message, view.at(blanks[0]), fix="puts the space back")


def fix_blank_context(view: View) -> bytes:
    """With a space on every empty context line."""
    lines = list(view.lines)
    if not view.scan.findings:
        for i in _blanks(view):
            lines[i] = b" \n"
    return view.with_lines(lines)


def _numbers(view: View) -> Iterator[Lint]:
    """git places a hunk by its new line number, GNU patch by its old one."""
    for section in view.sections:
        if section.kind in ("create", "delete"):
            continue
        for number, (hunk, right) in enumerate(
            zip(section.hunks, renumbered(section.hunks), strict=True), 1
        ):
            if hunk.new_start != right.new_start:
                yield Lint(
                    "line-numbers",
                    f"hunk {number} states line {hunk.new_start} for the new side where "
                    f"{right.new_start} follows from the old side: git and GNU patch begin to "
                    "look for it at different places",
                    view.at(hunk.patch_line - 1, section, number),
                    next="patchkit refresh",
                )
                break


def _short_context(view: View) -> Iterator[Lint]:
    """Less context below a change than above it: the end of the file to GNU patch, not to git."""
    for section in view.sections:
        for number, hunk in enumerate(section.hunks, 1):
            above, below = context(hunk)
            last = number == len(section.hunks)
            if 0 < below < above:
                yield Lint(
                    "short-context",
                    f"hunk {number} has {above} lines of context above and {below} below: quilt "
                    "without fuzz takes it at the end of the file only, git anywhere",
                    view.at(hunk.patch_line - 1, section, number),
                    "note" if last else "warning",
                    next="patchkit refresh (where the file goes on below)",
                )
