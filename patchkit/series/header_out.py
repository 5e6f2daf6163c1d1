"""The canonical header, written so that `git am` gives back author, date, subject and body."""

from __future__ import annotations

import re

from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Field, Header, canonical
from patchkit.series.mailtext import encode_text, has_encoded_word, quote_author

END = "---"
_NAME = re.compile(r"[!-9;-~]{1,100}")
_AUTHOR = re.compile(r"(?!\(|.*=\?)[^@<>]{1,60} <[^@<>\s]+@[^@<>\s]+>")
_CUTS = re.compile(r"diff -|Index: |---(\s*$|\s\S)|-{2,} *(?:[#%] *)?(>8|8<|>%|%<)")
"""Lines at which git mailinfo ends the message (patch start, `---`), or may (scissors)."""
_POSTMARK = re.compile(r"From .*\d:\d\d:\d\d \d{4}|From .*\d\d:\d\d \d{4}")
"""Lines at which git mailsplit begins a new mail."""
_IN_BODY = re.compile(r"(>?From\b|Subject:|Date:|\[PATCH\])", re.IGNORECASE)
"""First lines of a body that git mailinfo takes for headers."""


def dump_header(header: Header) -> bytes:
    """The canonical header, down to and with its `---` line.

    Raises Refused(bad-header), with every reason, where a mail reader would read something else
    than what the header says.
    """
    header = canonical(header)
    faults = header_faults(header)
    if faults:
        raise Refused(*faults)
    lines = []
    if header.author:
        lines.append(f"From: {quote_author(header.author)}")
    if header.date:
        lines.append(f"Date: {header.date}")
    subject = header.subject
    lines.append(f"Subject: {encode_text(subject) if has_encoded_word(subject) else subject}")
    lines.extend(_field(field) for field in header.fields)
    lines.append("")
    if header.body:
        lines += [header.body]
    lines.append(END)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def header_faults(header: Header) -> list[Finding]:
    """Why the canonical form of this header would not read back as it is."""
    out = []

    def fault(message: str, found: str = "", next: str = "") -> None:
        out.append(Finding("bad-header", message, Where(), found=found, next=next))

    if not header.subject.strip():
        fault("the header has no subject", next="give the patch a one-line Subject:")
    if has_encoded_word(header.subject) and not _is_unicode(header.subject):
        fault(
            "the subject looks encoded and holds bytes that are not UTF-8",
            repr(header.subject)[:120],
            "write the subject in UTF-8",
        )
    for what, text in (("From", header.author), ("Date", header.date), ("Subject", header.subject)):
        if re.search(r"[\0\r\n]", text):
            fault(f"{what}: is more than one line", repr(text)[:120])
    if re.match(r"[\[:]|re:", header.subject, re.IGNORECASE):
        fault(
            "git am takes a bracket, a colon or Re: at the start of the subject away",
            header.subject[:120],
            "begin the subject with a word",
        )
    if header.author and not _AUTHOR.fullmatch(header.author):
        fault(
            "the author is not `Name <address>` as git reads it",
            header.author[:120],
            "write Name <name@host>: a name without @, <, >, =? or a leading (, at most 60 bytes",
        )
    for field in header.fields:
        if not _NAME.fullmatch(field.name) or "\r" in field.value or "\0" in field.value:
            fault(f"{field.name!r} cannot be a field", field.value[:120])
        if field.name.lower() in ("from", "subject", "date", "description"):
            fault(f"a second {field.name}:", field.value[:120])
    for number, line in enumerate(header.body.split("\n"), 1):
        if _CUTS.match(line) or _POSTMARK.match(line):
            fault(
                f"line {number} of the text would end it for git am",
                line[:120],
                "indent the line by a blank",
            )
        elif number == 1 and _IN_BODY.match(line):
            fault("git am takes the first line of the text for a header", line[:120])
        elif "\r" in line or "\0" in line:
            fault(f"line {number} of the text holds a carriage return or a NUL", repr(line)[:120])
    return out


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _field(field: Field) -> str:
    first, *rest = field.value.split("\n")
    lines = [f"{field.name}: {first}".rstrip()]
    lines += [f" {line.rstrip() or '.'}" for line in rest]
    return "\n".join(lines)
