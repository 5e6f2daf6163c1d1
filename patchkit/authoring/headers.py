"""Headers of patches that come from elsewhere, made to survive `git am`; and who the author is.

The canonical writer refuses a header that a mail reader would read otherwise. A person who types
one is told so; one that comes from a commit or a mail is fitted instead, and what was changed is
said.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from itertools import pairwise

from patchkit.engine.model import Patch
from patchkit.errors import Refused, UsageFault
from patchkit.series.header import Field, Header, canonical, parse_header
from patchkit.series.header_edit import set_fields
from patchkit.series.header_out import dump_header, header_faults
from patchkit.series.mailtext import git_date, one_line
from patchkit.store import git

_BRACKETS = re.compile(r"\s*((?:\[[^\[\]]*\]\s*)+)[:\s]*(.*)", re.DOTALL)
_LAST_UPDATE = re.compile(rb"^(Last-Update:[ \t]*)[^\r\n]*", re.MULTILINE | re.IGNORECASE)
LONGEST_NAME = 60


@dataclass(frozen=True)
class Fitted:
    """A header that can be written, and what had to be changed for that, in words."""

    header: Header
    said: tuple[str, ...] = ()


def fit(header: Header, *, subject: str, author: str, date: str) -> Fitted:
    """The header in a form that `git am` reads as it is.

    subject, author, date: taken where the header has none that can be used; author may be "".
    """
    said: list[str] = []
    out = canonical(header)
    if not out.subject.strip():
        out = replace(out, subject=subject)
        said.append(f"no subject: {subject!r}")
    plain = plain_subject(one_line(out.subject.replace("\0", " ")))
    if plain != out.subject:
        out = replace(out, subject=plain or subject)
        said.append(
            "brackets in front of the subject would be lost by git am: written with a colon"
        )
    if not out.author and author:
        out = replace(out, author=author)
        said.append(f"no author: {author}")
    elif out.author and _is_fault(replace(out, body="", fields=())):
        named = _named(out.author)
        said.append(f"the author {out.author!r} is written as {named!r}")
        out = replace(out, author=named)
    if git_date(out.date) is None:
        if out.date:
            said.append(f"the date {out.date!r} is none that git reads")
        out = replace(out, date=date)
    read = [(f, _read_back(f)) for f in out.fields]
    gone = [f.name for f, again in read if again is None]
    if gone:
        said.append(f"fields that cannot be kept: {', '.join(map(repr, gone))}")
    out = replace(out, fields=tuple(again for _, again in read if again is not None))
    body = _fitted_body(out)
    if body != out.body:
        out = replace(out, body=body)
        said.append("lines of the text that would end it are indented")
    return Fitted(out, tuple(said))


def plain_subject(subject: str) -> str:
    """A subject without brackets in front: `[A][B] text` is `A, B: text`.

    git am takes leading brackets away; upstreams write what a change is about in them.
    """
    text = re.sub(r"^(?:\s*re:\s*|[:\s]+)+", "", subject, flags=re.IGNORECASE)
    found = _BRACKETS.fullmatch(text)
    if found is None:
        return text.replace("[", "", 1) if text.startswith("[") else text
    words = [w.strip(" :") for w in re.findall(r"\[([^\[\]]*)\]", found[1])]
    lead = ", ".join(word for word in words if word)
    rest = found[2].strip()
    return plain_subject(f"{lead}: {rest}" if lead and rest else lead or rest)


def typed(header: Header) -> Header:
    """A header that a person typed; raises UsageFault with what git am would not keep."""
    faults = header_faults(canonical(header))
    if faults:
        subject = plain_subject(one_line(header.subject.replace("\0", " ")))
        left = header_faults(canonical(replace(header, subject=subject))) if subject else faults
        better = f"the same command with --subject {shlex.quote(subject)}"
        raise UsageFault(
            *(
                replace(fault, name="usage", next=fault.next if fault in left else better)
                for fault in faults
            )
        )
    return canonical(header)


def identity(folder: str) -> str:
    """`Name <mail>` as the user's git would sign a commit in `folder`; "" where it would not."""
    extra = {
        name: os.environ[name]
        for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL")
        if name in os.environ
    }
    done = git.attempt(
        ["var", "GIT_AUTHOR_IDENT"],
        network=True,  # the user's own configuration says who the user is
        cwd=folder,
        extra=extra,
        settings={"user.useConfigOnly": "true"},
    )
    if done.returncode != 0:
        return ""
    stated = done.stdout.decode("utf-8", "replace").strip().rpartition("> ")[0]
    author = f"{stated}>" if stated else ""
    return "" if author and _is_fault(Header(author, "", "x")) else author


def dated(header: Header, day: str) -> Header:
    """The header with Last-Update set: only for a patch whose effect changed."""
    return header.with_field("Last-Update", day)


def kept_header(old: Patch, header: Header, day: str | None) -> bytes:
    """The header's bytes of a patch that is carried, not rewritten by a person: as they stand, but
    for the day. header: `old`'s, as it was read."""
    if parse_header(old.header) != header:
        return header_bytes(header, old, day)
    return old.header if day is None else set_fields(old.header, [Field("Last-Update", day)])


def header_bytes(header: Header, old: Patch | None, day: str | None) -> bytes:
    """The header's bytes. day: the new Last-Update, None to leave it.

    old: the patch that had this header; where the canonical writer refuses it (somebody wrote it
    by hand), its own bytes are kept but for the day.
    """
    wanted = header if day is None else dated(header, day)
    try:
        return dump_header(wanted)
    except Refused:
        if old is None or parse_header(old.header) != header:
            raise
    kept = old.header
    if day is not None:
        kept = _LAST_UPDATE.sub(lambda m: m[1] + day.encode(), kept, count=1)
    return kept


def same_header(one: Header, two: Header) -> bool:
    """Whether two headers say the same, whatever their shape."""
    return canonical(one) == canonical(two)


def with_fields(header: Header, fields: tuple[Field, ...]) -> Header:
    """The header with these fields set, each over the old one of its name."""
    for field in fields:
        header = header.with_field(field.name, field.value)
    return header


def _read_back(field: Field) -> Field | None:
    """The field as it reads when it is written; None where it cannot be a field."""
    header = Header("", "", "x", (field,))
    if header_faults(header):
        return None
    again = parse_header(dump_header(header)).fields
    return again[0] if len(again) == 1 and again[0].name == field.name else None


def _is_fault(header: Header) -> bool:
    return any(
        "author" in fault.message or "From" in fault.message for fault in header_faults(header)
    )


def _named(author: str) -> str:
    """An author as git reads one: a name without odd characters, and an address."""
    name, _, rest = author.partition("<")
    mail = re.sub(r"[<>\s]+", "", rest.partition(">")[0])
    if "@" not in mail:
        mail = _first_address(author) or "unknown@invalid"
        name = author.replace(mail, "")
    name = re.sub(r"[@<>\r\n\0]|=\?", " ", name).strip(" \t,;:()\"'")
    name = re.sub(r"\s+", " ", name)[:LONGEST_NAME].strip() or mail.partition("@")[0]
    fitted = f"{name} <{mail}>"
    return "unknown <unknown@invalid>" if _is_fault(Header(fitted, "", "x")) else fitted


def _first_address(text: str) -> str:
    """The first `name@host` of a text, "" without one."""
    for word in re.split(r"[\s<>]+", text):
        parts = word.split("@")
        for name, host in pairwise(parts):
            if name and host:
                return f"{name}@{host}"
    return ""


def _fitted_body(header: Header) -> str:
    """The text with a blank before every line that git am would take for something else."""
    lines = header.body.replace("\0", "").replace("\r", "").split("\n")
    bare = Header("", "", "x")
    for at, line in enumerate(lines):
        alone = replace(bare, body=line if at == 0 else f"x\n{line}")
        if line and header_faults(alone):
            lines[at] = f" {line}"
    return "\n".join(lines)
