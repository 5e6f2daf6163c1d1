"""Patches that came by mail: transfer encodings, and undoing them.

`apply` never decodes: quilt and `git apply` would read the encoded bytes, so a series that
holds such a file means two things. `import` decodes once and writes the plain form.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchkit.engine.text import split_lines

_FIELD = re.compile(rb"([A-Za-z][A-Za-z0-9-]*):[ \t]*([^\n]*)")
_BOUNDARY = re.compile(rb'boundary="?([^";\s]+)', re.IGNORECASE)
_FROM = re.compile(rb"From [0-9a-f]{7,64} ")
_Fields = dict[bytes, tuple[bytes, int]]
_ENCODED = {b"quoted-printable": "quoted-printable", b"base64": "base64"}


@dataclass(frozen=True)
class Part:
    """One encoded stretch of a mail.

    line: index of its Content-Transfer-Encoding line. start, end: the encoded body's lines.
    """

    encoding: str
    line: int
    start: int
    end: int


def encoded_parts(lines: Sequence[bytes]) -> list[Part]:
    """The encoded bodies of a mail, or of several in one file.

    Only header blocks are looked at: at the top of the file, after a mailbox's `From <id>`
    line, and after a MIME boundary where the mail has announced one.
    """
    found: list[Part] = []
    for fields, body, end in _mails(lines):
        marks = _marks(lines, fields, body, end)
        if not marks:
            found += _part(fields, body, end)
        for at, here in enumerate(marks):
            stop = marks[at + 1] if at + 1 < len(marks) else end
            inner, start = _fields(lines, here + 1, stop)
            found += _part(inner, start, stop)
    return found


def boundary_lines(lines: Sequence[bytes]) -> list[int]:
    """Indices of the lines between the parts of multipart mails.

    `git format-patch --attach` writes such mails. The lines begin with dashes and are no
    part of a hunk.
    """
    found: list[int] = []
    for fields, body, end in _mails(lines):
        found += _marks(lines, fields, body, end)
    return found


def _mails(lines: Sequence[bytes]) -> Iterator[tuple[_Fields, int, int]]:
    """The header fields, the body's first line and the end of each mail in the file."""
    heads = [0] if lines else []
    heads += [i for i, line in enumerate(lines) if i and line[:5] == b"From " and _FROM.match(line)]
    for number, head in enumerate(heads):
        end = heads[number + 1] if number + 1 < len(heads) else len(lines)
        fields, body = _fields(lines, head, end)
        yield fields, body, end


def _marks(lines: Sequence[bytes], fields: _Fields, body: int, end: int) -> list[int]:
    kind = fields.get(b"content-type", (b"", 0))[0]
    boundary = _BOUNDARY.search(kind)
    if not kind.lower().startswith(b"multipart/") or not boundary:
        return []
    mark = b"--" + boundary[1]
    return [i for i in range(body, end) if lines[i].rstrip() in (mark, mark + b"--")]


def _part(fields: _Fields, start: int, end: int) -> list[Part]:
    value, line = fields.get(b"content-transfer-encoding", (b"", 0))
    encoding = _ENCODED.get(value.strip().lower())
    return [Part(encoding, line, start, end)] if encoding else []


def _fields(lines: Sequence[bytes], at: int, end: int) -> tuple[_Fields, int]:
    """The header block at `lines[at]`: lower-case field -> (value, line); the body's index."""
    fields: _Fields = {}
    last = b""
    first = at
    while at < end and lines[at].strip():
        line = lines[at]
        found = _FIELD.match(line)
        if found:
            last = found[1].lower()
            fields.setdefault(last, (found[2].strip(), at))
        elif line[:1] in b" \t" and last:
            value, where = fields[last]
            fields[last] = (value + b" " + line.strip(), where)
        elif at > first or not line.startswith(b"From "):
            return fields, at  # not a header block, or no longer one
        at += 1
    return fields, min(at + 1, end)


def decode(data: bytes) -> bytes:
    """The same file with every encoded body decoded and its header line saying so.

    Bytes of bodies that are not encoded stay as they are. Raises ValueError for base64 that
    is damaged.
    """
    lines = split_lines(data)
    out: list[bytes] = []
    at = 0
    for part in encoded_parts(lines):
        out += lines[at : part.line]
        out.append(b"Content-Transfer-Encoding: 8bit\n")
        out += lines[part.line + 1 : part.start]
        out.append(_decoded(part.encoding, lines[part.start : part.end]))
        at = part.end
    out += lines[at:]
    return b"".join(out)


def _decoded(encoding: str, body: Sequence[bytes]) -> bytes:
    data = b"".join(body)
    if encoding == "quoted-printable":
        plain = binascii.a2b_qp(data)
    else:
        try:
            plain = binascii.a2b_base64(data)
        except binascii.Error as error:
            raise ValueError(f"damaged base64: {error}") from None
    # Mail ends its lines with CRLF; a patch whose every line does was LF before it was sent.
    if plain.count(b"\r\n") == plain.count(b"\n"):
        plain = plain.replace(b"\r\n", b"\n")
    return plain
