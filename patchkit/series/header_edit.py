"""Fields set in a header's own bytes: what somebody wrote stays as it is, byte for byte.

A carried patch is the same patch elsewhere. Written anew, its header would lose what stands between
`---` and the diff, its order and its spelling, and bury what changed in noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchkit.series.header import FIELD, Field, Header, parse_header, text_span
from patchkit.series.header_out import dump_header
from patchkit.series.mailtext import one_line


def set_fields(data: bytes, fields: Sequence[Field], known: Header | None = None) -> bytes:
    """The header `data` with these fields, each in its old place, else as the last one.

    known: `data` as it reads, where the caller has it. Values are one line. Text without any field
    gets a DEP-3 `Description:` of its first line, so that there is a place for them. Raises
    Refused(bad-header) only where neither those bytes nor the canonical form would read right.
    """
    return set_and_read(data, fields, known)[0]


def set_and_read(
    data: bytes, fields: Sequence[Field], known: Header | None = None
) -> tuple[bytes, Header]:
    """As `set_fields`, and what came of it, as it reads."""
    wanted = known if known is not None else parse_header(data)
    for field in fields:
        wanted = wanted.with_field(field.name, field.value)
    made = _edited(data, fields, wanted)
    found = parse_header(made)
    if replace(found, shape=wanted.shape) == wanted:
        return made, found
    made = dump_header(wanted)
    return made, parse_header(made)


def _edited(data: bytes, fields: Sequence[Field], header: Header) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text[len(mark) :].split("\n")
    first, _ = text_span(lines)
    if header.shape in ("mail", "dep3"):
        _into_block(lines, first, fields)
    else:
        end = "\r" if lines[first : first + 1] and lines[first].endswith("\r") else ""
        new = [f"{field.name}: {field.value}{end}" for field in fields]
        if header.shape == "prose":
            new.insert(0, f"Description: {one_line(lines[first])}{end}")
            del lines[first]
        lines[first:first] = [*new, end]
    return (mark + "\n".join(lines)).encode("utf-8", "surrogateescape")


def _into_block(lines: list[str], first: int, fields: Sequence[Field]) -> None:
    """Set the fields in the block of fields that begins at `first`."""
    for field in fields:
        stop = _stop(lines)
        places = _places(lines, first, stop, field.name)
        end = "\r" if lines[stop - 1].endswith("\r") else ""
        new = f"{field.name}: {field.value}{end}"
        if not places:
            lines.insert(stop, new)
            continue
        for start, last in reversed(places):
            del lines[start:last]
        lines.insert(places[0][0], new)


def _stop(lines: Sequence[str]) -> int:
    """The end of the block of fields."""
    at, limit = text_span(lines)
    while at < limit and lines[at].strip():
        at += 1
    return at


def _places(lines: Sequence[str], first: int, stop: int, name: str) -> list[tuple[int, int]]:
    """Where fields of that name stand, with the lines that continue them."""
    found: list[tuple[int, int]] = []
    at = first
    while at < stop:
        last = at + 1
        while last < stop and lines[last][:1] in (" ", "\t"):
            last += 1
        stated = FIELD.fullmatch(lines[at].rstrip("\r"))
        if stated is not None and stated[1].lower() == name.lower():
            found.append((at, last))
        at = last
    return found
