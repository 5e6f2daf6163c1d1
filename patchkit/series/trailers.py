"""Fields at the foot (or head) of a message: git's trailers, gbp's pseudo-headers.

A commit has no place for DEP-3 fields but its message. Taking a commit or a gbp patch back, the
known ones become fields of the header again; all others stay where they are, in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from patchkit.series.header import Field, Header, tidy

DEP3 = (
    *("origin", "forwarded", "bug", "reviewed-by", "last-update", "applied-upstream"),
    *("drop-when", "rebased-from"),
)
"""Fields that belong in a patch's header; also Bug-VENDOR."""

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,60}):[ \t]+(\S.*)")


def lift_fields(header: Header, names: Iterable[str] = DEP3) -> Header:
    """The header with the known fields of its text's last and first paragraph as fields.

    A paragraph counts where every line of it is `Name: value` or continues one. names: lower
    case; what stands in the header already stays the value.
    """
    known = set(names)
    body, found = header.body, list(header.fields)
    have = {field.name.lower() for field in found}
    for first in (False, True):
        body, lifted = _lift(body, known, first)
        found += [f for f in lifted if f.name.lower() not in have]
    return replace(header, body=body, fields=tuple(found))


def take_trailers(text: str, names: Iterable[str]) -> tuple[str, dict[str, str]]:
    """A message without these trailers of its last paragraph, and their values by lower-case
    name; of a repeated one the last counts, as in git."""
    body, lifted = _lift(text, {name.lower() for name in names}, first=False)
    return body, {field.name.lower(): field.value for field in lifted}


def _lift(text: str, known: set[str], first: bool) -> tuple[str, list[Field]]:
    paragraphs = tidy(text.split("\n")).split("\n\n")
    at = 0 if first else len(paragraphs) - 1
    kept: list[str] = []
    lifted: list[Field] = []
    taking = False
    for line in paragraphs[at].split("\n"):
        stated = _LINE.fullmatch(line)
        if stated:
            taking = _is_known(stated[1].lower(), known)
            if taking:
                lifted.append(Field(stated[1], stated[2]))
                continue
        elif not line.startswith((" ", "\t")) or not (kept or lifted):
            return text, []
        elif taking:
            last = lifted[-1]
            lifted[-1] = Field(last.name, f"{last.value} {line.strip()}")
            continue
        kept.append(line)
    if not lifted:
        return text, []
    paragraphs[at] = "\n".join(kept)
    return tidy("\n\n".join(paragraphs).split("\n")), lifted


def _is_known(name: str, known: set[str]) -> bool:
    return name in known or (name.startswith("bug-") and "bug" in known)
