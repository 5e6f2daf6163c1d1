"""A patch's header: who, when, what and why, read from three shapes and written in one.

Read are a mail (git format-patch), DEP-3 fields, and bare prose. Written is the mail shape with
DEP-3 fields in it, which `git am` takes with author, date, subject and body right:

    From: Name <address>
    Date: Wed, 1 Jan 2031 00:00:01 +0000
    Subject: one line
    Origin: vendor
    Forwarded: no

    The why, as free text.
    ---

What stands between `---` and the diff (a diffstat, notes) is no part of the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from patchkit.engine.rule import Allow
from patchkit.errors import Finding, Refused, Where
from patchkit.series.mailtext import decode_words, one_line, unquote_author

MAX_BYTES = 1 << 20
AUTHOR = ("from", "author")
ALLOW = "Patchkit-Allow"

FIELD = re.compile(r"([!-9;-~]{1,100}):[ \t]?(.*)")
_KNOWN = re.compile(
    r"(from|date|subject|description|author|origin|bug(-.*)?|forwarded|reviewed-by|acked-by"
    r"|last-update|applied-upstream|drop-when|rebased-from|patchkit-.*)",
    re.IGNORECASE,
)
_MBOX = re.compile(r"From [0-9a-f]{7,64} |From \S+ +\w{3} \w{3} ")
_FURNITURE = re.compile(r"Index: \S.*|={20,}|diff -\S.*")
# One part of a pattern at most may take the same text: else a long line costs its square.
_REPLY = re.compile(r"\s*re:\s*", re.IGNORECASE)
_BRACKET = re.compile(r"\s*\[([^\[\]]*)\]\s*")
_PATCH = re.compile(r"\bPATCH\b", re.IGNORECASE)
_SWITCH = re.compile(r"Switch:[ \t]+(\S+)(?:[ \t]+\(default[ \t]([^()]*)\))?:[ \t]*(.*)")
TRANSPORT = frozenset(
    (
        *("mime-version", "content-type", "content-transfer-encoding", "content-disposition"),
        *("message-id", "in-reply-to", "references", "x-mailer", "user-agent", "return-path"),
        *("received", "to", "cc", "bcc", "reply-to", "delivered-to", "list-id", "sender"),
        *("x-mailing-list", "x-patch-name", "x-patch-guard"),
    )
)
"""Fields of the mail's way, not of the patch: left out by `canonical`."""


@dataclass(frozen=True)
class Field:
    """One field as written; lines of a longer value are joined by line feeds."""

    name: str
    value: str


@dataclass(frozen=True)
class Switch:
    """A run-time switch that the patch brings: `Switch: NAME (default X): meaning`."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Header:
    """A header, read.

    author: `Name <address>`, decoded and unquoted. date: as it stands (RFC 2822). subject: one
    line, without a [PATCH …] prefix. fields: all others, in order, names as written. body: the
    why, without blank lines around it. shape: "mail", "dep3", "prose" or "none".
    """

    author: str = ""
    date: str = ""
    subject: str = ""
    fields: tuple[Field, ...] = ()
    body: str = ""
    shape: str = "mail"

    @property
    def description(self) -> str:
        """DEP-3's short description: the subject."""
        return self.subject

    @property
    def long(self) -> str:
        """DEP-3's long description: the body."""
        return self.body

    @property
    def authors(self) -> list[str]:
        """From: and every Author:, in order."""
        return ([self.author] if self.author else []) + self.get("author")

    def get(self, name: str) -> list[str]:
        """The values of a field, in order; names differ only by letters, not by case."""
        return [f.value for f in self.fields if f.name.lower() == name.lower()]

    def first(self, name: str) -> str:
        """The first value of a field, "" without one."""
        return next(iter(self.get(name)), "")

    def with_field(self, name: str, value: str) -> Header:
        """The header with this value for a field: in its old place, else as the last field."""
        out = [f for f in self.fields if f.name.lower() != name.lower()]
        at = next((i for i, f in enumerate(self.fields) if f.name.lower() == name.lower()), None)
        out.insert(len(out) if at is None else at, Field(name, value))
        return replace(self, fields=tuple(out))

    def without_field(self, name: str) -> Header:
        """The header without a field."""
        left = tuple(f for f in self.fields if f.name.lower() != name.lower())
        return replace(self, fields=left)

    def view(self) -> dict[str, str | list[str]]:
        """Every field by lower-case name, a list where it is repeated; with description, long and
        author, whatever the header called them. Empty ones are left out."""
        out: dict[str, str | list[str]] = {}
        rows = [("description", [self.subject]), ("long", [self.body]), ("date", [self.date])]
        rows.append(("author", self.authors))
        named: dict[str, list[str]] = {}
        for field in self.fields:
            named.setdefault(field.name.lower(), []).append(field.value)
        rows += named.items()
        for name, values in rows:
            found = [v for v in values if v]
            if found and name not in out:
                out[name] = found[0] if len(found) == 1 else found
        return out

    def switches(self) -> tuple[Switch, ...]:
        """The `Switch:` lines of the body; indented lines continue one."""
        out: list[Switch] = []
        last = False
        for line in self.body.split("\n"):
            stated = _SWITCH.fullmatch(line)
            if stated:
                out.append(Switch(stated[1].rstrip(":"), (stated[2] or "").strip(), stated[3]))
            elif last and line[:1] in " \t" and line.strip():
                end = out[-1]
                out[-1] = replace(end, meaning=f"{end.meaning} {line.strip()}".strip())
                continue
            last = stated is not None
        return tuple(out)

    def allow(self) -> Allow:
        """What `Patchkit-Allow:` fields allow a loose patch: `fuzz=1`, `fuzz=2`,
        `line-endings=target`.

        Raises Refused(bad-header) for anything else: a permission that is not understood would
        otherwise be none, silently. The engine honours fuzz up to 2: 3 or more was never right in
        65 measured uses.
        """
        out = Allow()
        for value in self.get(ALLOW):
            for word in re.split(r"[,\s]+", value.strip()):
                if re.fullmatch("fuzz=[0-9]", word):
                    out = replace(out, fuzz=int(word[-1]))
                elif word == "line-endings=target":
                    out = replace(out, line_endings="target")
                else:
                    raise Refused(
                        Finding(
                            "bad-header",
                            f"{ALLOW}: {word!r} cannot be allowed",
                            expected="fuzz=1, fuzz=2 or line-endings=target",
                            found=word,
                        )
                    )
        return out


def parse_header(data: bytes) -> Header:
    """Read a header: every byte before the first section of a patch.

    Raises Refused(bad-header) above a megabyte. Nothing else is refused: whatever cannot be a
    field is prose.
    """
    if len(data) > MAX_BYTES:
        raise Refused(
            Finding(
                "bad-header",
                f"the header is larger than {MAX_BYTES} bytes",
                Where(patch_line=1),
                found=f"{len(data)} bytes",
            )
        )
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    whole = [line.rstrip("\r") for line in text.split("\n")]
    first, stop = text_span(whole)
    lines = whole[first:stop]
    fields, rest = _fields(lines)
    if fields is None:
        return _prose(lines)
    return _structured(fields, rest)


def canonical(header: Header) -> Header:
    """The header as the canonical writer has it: mail shape, one From, no fields of the mail's way,
    the body as `git am` keeps it (no space at line ends, no two blank lines in a row)."""
    author = header.author
    fields = []
    for field in header.fields:
        if field.name.lower() in TRANSPORT:
            continue
        if not author and field.name.lower() == "author":
            author = field.value
            continue
        fields.append(field)
    subject = re.sub(r"[ \t]+", " ", header.subject).strip(" ")  # as git reads the line back
    return Header(
        author,
        header.date,
        subject,
        tuple(fields),
        tidy(header.body.split("\n")),
        "mail",
    )


def tidy(lines: Iterable[str]) -> str:
    """A body as git keeps it: no space at line ends, one blank line at most, none around it."""
    out: list[str] = []
    for line in lines:
        line = line.rstrip(" \t\r")
        if line or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    return "\n".join(out)


def text_span(lines: Sequence[str]) -> tuple[int, int]:
    """Where the text of a header begins and ends: behind a mailbox's own line and blank ones,
    before the first `---` alone (what follows is a diffstat or notes), or, without one, before
    what quilt and other tools put right above a diff (`Index: x`, =====)."""
    stop = next((i for i, line in enumerate(lines) if line.rstrip(" \t\r") == "---"), None)
    if stop is None:
        stop = len(lines)
        while stop and _is_furniture(lines[stop - 1].rstrip("\r")):
            stop -= 1
    first = 1 if stop and _MBOX.match(lines[0]) else 0
    while first < stop and not lines[first].strip():
        first += 1
    return first, stop


def _is_furniture(line: str) -> bool:
    return not line.strip(" \t") or _FURNITURE.fullmatch(line) is not None


def _fields(lines: list[str]) -> tuple[list[Field] | None, list[str]]:
    """The leading fields and the lines after them; None where the text begins as prose."""
    found: list[tuple[str, list[str]]] = []
    for index, line in enumerate(lines):
        if not line.strip():
            rest = lines[index + 1 :]
            break
        stated = FIELD.fullmatch(line)
        if line[0] in " \t" and found:
            found[-1][1].append("" if line.strip() == "." else line[1:])
        elif stated:
            found.append((stated[1], [stated[2].strip(" \t")]))
        else:
            return None, lines
    else:
        rest = []
    if not found or not any(_KNOWN.fullmatch(name) for name, _ in found):
        return None, lines
    return [Field(name, "\n".join(values)) for name, values in found], rest


def _structured(fields: list[Field], rest: list[str]) -> Header:
    author = date = subject = synopsis = ""
    long: list[str] = []
    shape = "dep3"
    kept: list[Field] = []
    mail = any(field.name.lower() == "subject" for field in fields)
    for field in fields:
        name = field.name.lower()
        # DEP-3: Author and From say the same, and the first is the author. In a mail From is.
        if (name == "from" or (name == "author" and not mail)) and not author:
            author = unquote_author(one_line(field.value))
        elif name == "date" and not date:
            date = one_line(field.value)
        elif name == "subject" and not subject:
            subject = _subject(decode_words(one_line(field.value)))
            shape = "mail"
        elif name == "description" and not synopsis and not long:
            synopsis, *long = field.value.split("\n")
        elif name in AUTHOR:
            kept.append(Field("Author", unquote_author(one_line(field.value))))
        else:
            kept.append(field)
    if synopsis and subject:
        long = [synopsis, *long]
    body = tidy([*long, "", *rest])
    if not author and kept:
        first = next((f for f in kept if f.name.lower() == "author"), None)
        if first is not None:
            author = first.value
            kept.remove(first)
    return Header(author, date, subject or synopsis, tuple(kept), body, shape)


def _prose(lines: list[str]) -> Header:
    body = tidy(lines)
    if not body:
        return Header(shape="none")
    subject, _, rest = body.partition("\n")
    return Header(subject=one_line(subject), body=rest.strip("\n"), shape="prose")


def _subject(text: str) -> str:
    """Without `Re:` and the [PATCH 1/2] bracket; any other bracket is the author's own."""
    at = 0
    while True:
        lead = _REPLY.match(text, at)
        if lead is None:
            lead = _BRACKET.match(text, at)
            if lead is None or not _PATCH.search(lead[1]):
                return one_line(text[at:])
        at = lead.end()
