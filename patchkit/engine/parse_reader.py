"""One pass over the lines of a patch file: where its sections stand, and what stands between."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass

from patchkit.engine.mail import boundary_lines, encoded_parts
from patchkit.engine.model import Hunk, Patch, Section
from patchkit.engine.parse_body import bare_header, read_hunks, skip_body
from patchkit.engine.parse_checks import check_section, shown_name, shown_path
from patchkit.engine.parse_headers import Head, read_git_head, read_plain_head
from patchkit.engine.parse_hunks import HUNK_HEADER, is_file_header
from patchkit.engine.parse_prose import (
    BOM,
    here_document,
    is_context_diff,
    normal_diff_line,
    why_no_diff,
)
from patchkit.engine.parse_report import Mend, Report
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.text import Whole, split_lines
from patchkit.errors import Finding

_DIFF, _DASH, _AT, _STAR, _BINARY = b"d-@*B"
_ENCODED = re.compile(rb"^content-transfer-encoding:", re.IGNORECASE | re.MULTILINE)
_MULTIPART = re.compile(rb"^content-type:[ \t]*multipart/", re.IGNORECASE | re.MULTILINE)
_FIELD = b"content-t"
_STRETCH = 1 << 20


def _names_mail_fields(data: bytes) -> bool:
    """Whether _FIELD stands in `data` in any case; looked at in stretches, for its copy's size."""
    return any(
        _FIELD in data[at : at + _STRETCH + len(_FIELD)].lower()
        for at in range(0, len(data), _STRETCH)
    )


@dataclass(frozen=True)
class Scan:
    """A patch as far as it reads, and what is wrong with it.

    findings: no notes. mends: the hunks whose counts were corrected (recount only). surplus:
    ranges of line indices of context that no hunk counts. first, last: line indices of the first
    section and behind the last one; both 0 where there is none.
    """

    patch: Patch
    findings: tuple[Finding, ...]
    mends: tuple[Mend, ...] = ()
    surplus: tuple[tuple[int, int], ...] = ()
    first: int = 0
    last: int = 0


class Reader:
    """One pass over the lines of one file."""

    def __init__(self, data: bytes, name: str, recount: bool) -> None:
        self.data, self.name, self.recount = data, name, recount
        self.bom = len(BOM) if data.startswith(BOM) else 0
        text = data[self.bom :] if self.bom else data
        self.lines = split_lines(text)
        self.header_lines = self.lines
        # A search that looks at every line start is slow: most patches name no mail field at all.
        self.mail = _names_mail_fields(data)
        self.whole = Whole(text)
        if self.mail and _MULTIPART.search(data):
            self.header_lines = list(self.lines)
            for at in boundary_lines(self.lines):
                self.lines[at] = b"\n"
            self.whole = Whole(b"".join(self.lines))
        self.report = Report(name)
        self.sections: list[Section] = []
        self.first: int | None = None  # index of the first section's first line
        self.last = 0  # index after the last section's last line

    # ------------------------------------------------------------------ the file

    def run(self) -> Scan:
        encoded = self.mail and _ENCODED.search(self.data)
        parts = encoded_parts(self.lines) if encoded else []
        for part in parts:
            self.report.find(
                "encoded-mail",
                f"the mail is in {part.encoding}: its bytes are not the patch's",
                part.line,
                expected="a mail in 7bit or 8bit",
                found=part.encoding,
                next=f"patchkit import {show_path(self.name)} (decodes it)",
            )
        if not parts:
            self.read_lines()
            self.check()
        findings, notes = self.report.in_order()
        header = self.data[: self.bom] + b"".join(self.header_lines[: self.first])
        patch = Patch(self.name, tuple(self.sections), header, self.data, notes)
        report = self.report
        mends, surplus = tuple(report.mends), tuple(report.surplus)
        return Scan(patch, findings, mends, surplus, self.first or 0, self.last)

    def read_lines(self) -> None:
        lines, end = self.lines, len(self.lines)
        i = 0
        while i < end:
            line = lines[i]
            lead = line[0]
            if lead == _DIFF and line.startswith(b"diff --"):
                i = self.diff_line(i)
            elif lead == _DASH and is_file_header(lines, i):
                i = self.section(read_plain_head(lines, i), i, i + 2)
            elif lead == _AT and line.startswith(b"@@"):
                i = self.stray_hunk(i)
            elif lead == _STAR and is_context_diff(lines, i):
                self.report.not_unified(self.lines, i, "it is an old-style context diff")
                i += 3
            elif lead == _BINARY and self.is_binary_line(i) and lines[i - 1].startswith(b"diff "):
                i = self.binary_line(i)
            else:
                i += 1

    def check(self) -> None:
        names = Counter((section.old_path, section.new_path) for section in self.sections)
        seen: dict[bytes, int] = {}
        for section in self.sections:
            for finding in check_section(section):
                self.report.findings.append(finding.in_patch(self.name))
            if names[section.old_path, section.new_path] == 1:
                continue
            digest = hashlib.sha256(section.raw).digest()
            first = seen.setdefault(digest, section.patch_line)
            if first != section.patch_line:
                last = first + section.patch_lines - 1
                self.report.find(
                    "duplicate-section",
                    f"lines {first} to {last} are this section already, byte for byte",
                    section.patch_line - 1,
                    file=shown_name(section),
                    expected="each change once",
                    found=f"twice, at line {first} and line {section.patch_line}",
                    next=f"remove one of the two from {show_path(self.name)}",
                )
        if not self.sections and not self.report.findings:
            self.no_diff()
        self.notes()

    def no_diff(self) -> None:
        line = normal_diff_line(self.data)
        if line is not None:
            self.report.not_unified(
                self.lines, line - 1, "it is a diff without context (diff without -u)"
            )
            return
        message, then = why_no_diff(self.data)
        self.report.find("no-diff", message, None, next=then)

    def notes(self) -> None:
        feeds = self.data.count(b"\n")
        if self.sections and feeds and self.data.count(b"\r\n") == feeds:
            self.report.find(
                "line-endings",
                "every line of the patch file ends in CRLF, its header lines too; "
                "GNU patch takes the CR away, git does not",
                None,
                note=True,
            )
        if self.sections and self.first is not None:
            around = here_document(self.lines, self.first, self.last)
            if around:
                shown = ", ".join(f"line {line}: {text}" for line, text in around)
                self.report.find(
                    "bad-header",
                    f"the shell lines that wrote the patch are still around it ({shown})",
                    around[0][0] - 1,
                    next=f"patchkit lint --fix {show_path(self.name)}",
                    note=True,
                )

    # ------------------------------------------------------------------ sections

    def diff_line(self, at: int) -> int:
        line = self.lines[at]
        if line.startswith(b"diff --git "):
            head, i = read_git_head(self.lines, at)
            if i == at + 1 and b"/" not in line and not self.starts_body(i):
                return i  # a sentence that begins so
            if i == at + 1 and self.starts_body(i):
                head.faults.append((at, 'the "---" and "+++" lines are missing'))
            return self.section(head, at, i)
        if line.startswith((b"diff --cc ", b"diff --combined ")):
            i = at + 1
            while i < len(self.lines) and not self.lines[i].startswith((b"diff ", b"From ")):
                if self.lines[i].startswith(b"@@@"):
                    break
                i += 1
            else:
                i = at
            self.report.not_unified(self.lines, i, "it shows a merge (git's combined diff)")
            return i + 1
        return at + 1

    def starts_body(self, at: int) -> bool:
        return at < len(self.lines) and self.lines[at].startswith((b"@@", b"GIT binary patch"))

    def section(self, head: Head, at: int, i: int) -> int:
        """The section whose header is `lines[at:i]`; returns the index after its last line."""
        for line, reason in head.faults:
            self.report.find("no-file-header", reason, line, next="make the diff anew")
        bare = head.bare_old is not None
        binary = ""
        hunks: list[Hunk] = []
        end = i
        if i < len(self.lines) and self.lines[i].startswith(b"@@"):
            shown = shown_path(head.new or head.old or "?", bare)
            hunks, i, end = read_hunks(
                self.lines, i, shown, self.report, self.whole, recount=self.recount
            )
            if not hunks:  # every hunk has its finding already
                self.first = at if self.first is None else self.first
                self.last = i
                return i
        elif i < len(self.lines) and self.lines[i].rstrip() == b"GIT binary patch":
            binary, i = self.git_binary(i)
            end = i
        elif i < len(self.lines) and self.is_binary_line(i):
            binary, i = "no-content", i + 1
            end = i
        if head.empty_old and not any(h.old_count for h in hunks):
            head.words.add("create")
            head.old = None
        section = Section(
            head.kind,
            head.old,
            head.new,
            tuple(hunks),
            head.git,
            bare,
            head.old_mode,
            head.new_mode,
            head.old_id,
            head.new_id,
            binary,
            at + 1,
            end - at,
            self.whole,
        )
        if not head.faults:
            self.sections.append(section)
        self.first = at if self.first is None else self.first
        self.last = end
        return i

    def is_binary_line(self, at: int) -> bool:
        line = self.lines[at].rstrip()
        return line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ")

    def binary_line(self, at: int) -> int:
        """ "Binary files … differ" of a plain `diff -r`: a change that is not in the patch."""
        self.report.find(
            "binary-unsupported",
            f"a binary file differs and the patch has no content for it: "
            f"{show_line(self.lines[at])}",
            at,
            expected="text hunks",
            found="no content",
            next="leave the file out of the patch, or bring it another way",
        )
        return at + 1

    def git_binary(self, at: int) -> tuple[str, int]:
        """The kind of a git binary patch at `lines[at]`, and the index after it."""
        lines, end = self.lines, len(self.lines)
        i, kind = at + 1, "literal"
        for block in range(2):
            if i == end or not lines[i].startswith((b"literal ", b"delta ")):
                break
            if not block and lines[i].startswith(b"delta "):
                kind = "delta"
            while i < end and lines[i].strip():
                i += 1
            i = min(i + 1, end)
        return kind, i

    def stray_hunk(self, at: int) -> int:
        """A line that begins with @@ where no section is open."""
        line = self.lines[at]
        header = HUNK_HEADER.match(line)
        if header is None:
            text = line.rstrip()
            hunkish = self.first is not None or text == b"@@" or line.startswith((b"@@ -", b"@@@"))
            if hunkish or text.endswith(b" @@"):
                return bare_header(self.lines, at, None, None, self.report)
            return at + 1
        if self.first is None:
            message = "a hunk stands before any --- and +++ line: no file is named"
        else:
            message = "a hunk stands behind lines that belong to no file: no file is named"
        self.report.find(
            "no-file-header",
            message,
            at,
            expected="--- FILE and +++ FILE above it",
            found=show_line(line),
            next="add the two lines; where it only quotes a hunk, indent it",
        )
        return skip_body(self.lines, at, header)
