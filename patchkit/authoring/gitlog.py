"""What `git show` and `git log -p` print, as the mails that `git format-patch` would have made.

The author stands there as `Author:`, the message is indented by four blanks, and the newest
commit comes first.
"""

from __future__ import annotations

import re

_COMMIT = re.compile(rb"commit [0-9a-f]{7,64}(?: \(.*\))?\r?\n")
_FIELD = re.compile(rb"(Author|Date|Merge|Commit|AuthorDate|CommitDate): +(.*)")
_DATE = re.compile(rb"(\w{3}) (\w{3}) (\d{1,2}) (\d\d:\d\d:\d\d) (\d{4}) ([+-]\d{4})")


def commits_of(lines: list[bytes]) -> list[bytes]:
    """The commits of such a text as mails, oldest first; none where it is no such text."""
    starts = [i for i, line in enumerate(lines) if _COMMIT.fullmatch(line) and _author(lines, i)]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        return []
    ends = [*starts[1:], len(lines)]
    return [_mail(lines[a:b]) for a, b in reversed(list(zip(starts, ends, strict=True)))]


def _author(lines: list[bytes], at: int) -> bool:
    return any(line.startswith(b"Author: ") for line in lines[at + 1 : at + 3])


def _mail(lines: list[bytes]) -> bytes:
    fields: dict[bytes, bytes] = {}
    at = 1
    while at < len(lines) and (found := _FIELD.fullmatch(lines[at].rstrip(b"\r\n"))):
        fields[found[1]] = found[2]
        at += 1
    text: list[bytes] = []
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith(b"    ")):
        text.append(lines[at].rstrip(b"\r\n")[4:])
        at += 1
    message = b"\n".join(text).strip(b"\n")
    subject, _, body = message.partition(b"\n\n")
    head = [b"From: " + fields.get(b"Author", b"")]
    date = _DATE.fullmatch(fields.get(b"Date", fields.get(b"AuthorDate", b"")))
    if date is not None:
        day, month, number, time, year, zone = date.groups()
        head.append(b"Date: %s, %s %s %s %s %s" % (day, number, month, year, time, zone))
    head.append(b"Subject: " + b" ".join(subject.split(b"\n")))
    whole = b"\n".join(head) + b"\n\n" + (body + b"\n" if body else b"") + b"---\n"
    return whole + b"".join(lines[at:])
