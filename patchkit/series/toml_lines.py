"""TOML, and the line a key stands in: tomllib gives values without places."""

from __future__ import annotations

import re
from typing import Any

from patchkit.errors import Finding, Refused, Where

_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_HEADER = re.compile(r"\s*\[\[?(.+?)\]\]?\s*(?:#.*)?$")
_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")


def read_toml(data: bytes, name: str) -> dict[str, Any]:
    """The document's root table. Raises Refused(bad-pins) with the line."""
    import tomllib

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _bad(name, line, "not UTF-8") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        reason = _PLACE.sub("", str(error))
        raise _bad(name, int(place[1]) if place else text.count("\n") + 1, reason) from None
    except (RecursionError, ValueError) as error:
        # Nesting without end, or an integer of ten thousand digits: neither belongs here.
        raise _bad(name, None, f"cannot be read ({type(error).__name__})") from None


def line_of(data: bytes, key: tuple[str, ...]) -> int | None:
    """1-based line of the dotted `key` or of the nearest table above it; None where not found."""
    return find_line(line_index(data), key)


def line_index(data: bytes) -> dict[tuple[str, ...], int]:
    """The line in which each table and key first stands.

    A look at the text, for messages only: tables and keys that span lines may be missed.
    """
    index: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        header = _HEADER.match(line)
        if header:
            parts = _parts(header[1], end=True)
            if parts is None:
                continue
            table, start = parts, 1
        else:
            parts = _parts(line, end=False)
            if not parts:
                continue
            start = len(table) + 1
            parts = (*table, *parts)
        # [a.b.c] also makes a.b, where that has no line of its own.
        for length in range(len(parts), start - 1, -1):
            index.setdefault(parts[:length], number)
    return index


def find_line(index: dict[tuple[str, ...], int], key: tuple[str, ...]) -> int | None:
    """The line of `key`, or of the nearest table above it."""
    for length in range(len(key), 0, -1):
        if key[:length] in index:
            return index[key[:length]]
    return None


def _parts(text: str, *, end: bool) -> tuple[str, ...] | None:
    """The dotted key at the start of `text`, up to its end or to the = sign."""
    parts: list[str] = []
    at = 0
    while True:
        part = _PART.match(text, at)
        if part is None:
            return None
        parts.append(next(p for p in part.groups() if p is not None))
        at = part.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    if end:
        return tuple(parts) if at == len(text) else None
    return tuple(parts) if text[at : at + 1] == "=" else None


def _bad(name: str, line: int | None, reason: str) -> Refused:
    place = f"{name} line {line}" if line else name
    return Refused(Finding("bad-pins", f"{place}: {reason}", Where(file=name, line=line)))


def table_spans(lines: list[str]) -> list[tuple[tuple[str, ...], int]]:
    """Each [table] and the index behind its last line that is neither blank nor a comment.

    Comments above the next header thus belong to that header. A look at the text, like `line_of`.
    """
    spans: list[tuple[tuple[str, ...], int]] = []
    for number, line in enumerate(lines):
        header = _HEADER.match(line)
        key = _parts(header[1], end=True) if header else None
        if key is not None:
            spans.append((key, number + 1))
        elif spans and line.strip() and not line.lstrip().startswith("#"):
            spans[-1] = (spans[-1][0], number + 1)
    return spans
