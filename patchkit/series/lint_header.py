"""Rules about the header: whether it is there, is true to its form, and survives `git am`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchkit.errors import Refused
from patchkit.series.header import ALLOW, Header, canonical, parse_header
from patchkit.series.header_out import dump_header, header_faults
from patchkit.series.lint_view import Lint, View
from patchkit.series.mailtext import git_date

_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_WANTED = ("Origin", "Forwarded", "Last-Update")


def find(view: View) -> Iterator[Lint]:
    """All findings of this module's rules."""
    if not view.sections:
        return
    try:
        header = view.header
    except Refused as refusal:
        for finding in refusal.findings:
            yield Lint("header", finding.message, view.at(0), "error", next=finding.next)
        return
    for level, message, fix in _faults(header, fixed=fix_header(view) != view.data):
        yield Lint("header", message, view.at(0), level, fix)


def _faults(header: Header, fixed: bool) -> Iterator[tuple[str, str, str]]:
    if header.shape == "none":
        yield "warning", "there is no header: nobody will know who made the patch and why", ""
        return
    if header.shape != "mail":
        fix = "writes it as a mail" if fixed else ""
        yield "warning", "the header is no mail, so git am does not read it", fix
    if not header.author:
        yield "warning", "there is no From: (git am and the commit need an author)", ""
    if not header.date:
        yield "warning", "there is no Date: (the commit's date is then no part of the patch)", ""
    elif git_date(header.date) is None:
        yield "warning", f"the date is none that git reads: {header.date[:60]!r}", ""
    if not header.body:
        yield "note", "the text does not say why", ""
    missing = [name for name in _WANTED if not header.first(name)]
    if missing:
        yield "note", f"no field {', '.join(missing)}: when can the patch be dropped?", ""
    for day in header.get("Last-Update"):
        if not _DAY.fullmatch(day.strip()):
            yield "warning", f"Last-Update is no day (YYYY-MM-DD): {day[:40]!r}", ""
    if header.get(ALLOW):
        try:
            header.allow()
        except Refused as refusal:
            yield "error", refusal.findings[0].message, ""
        else:
            yield "error", f"{ALLOW}: is for loose patches, a series is exact", ""
    for finding in header_faults(canonical(header)):
        if "no subject" in finding.message:
            yield "warning", "there is no Subject:", ""
        else:
            yield "warning", f"{finding.message}: {finding.found}", ""


def fix_header(view: View) -> bytes:
    """A DEP-3 header (`Description:`) as the mail that git am reads, with the same content."""
    if view.scan.findings or not view.sections:
        return view.data
    try:
        header = view.header
        if header.shape != "dep3" or not header.author:
            return view.data
        written = dump_header(header)
    except Refused:
        return view.data
    if parse_header(written).view() != canonical(header).view():
        return view.data
    return written + view.data[len(view.scan.patch.header) :]
