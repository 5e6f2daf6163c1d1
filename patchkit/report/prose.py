"""A header's free text as paragraphs, lists and preformatted blocks; addresses become links."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from patchkit.engine.plain import plain

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\]+[^\s<>\"'`\\.,;:!?)\]]")
_CODE = re.compile(r"(?<![`\w])`([^`\s](?:[^`\n]{0,198}[^`\s])?)`(?![`\w])")
_ITEM = re.compile(r"(?:[-*•]|\d{1,2}[.)])[ \t]+(.*)")


@dataclass(frozen=True)
class Block:
    """kind: text, list or code. parts: one paragraph, the items, or the lines."""

    kind: str
    parts: tuple[Markup, ...]


def blocks(body: str) -> tuple[Block, ...]:
    """The text in blocks. `Switch:` lines are left out: a page has a table of them."""
    out: list[Block] = []
    for part in re.split(r"\n[ \t]*\n", body):
        lines = _without_switches(part.split("\n"))
        if lines:
            out += _block(lines)
    return tuple(out)


def linked(text: str) -> Markup:
    """The text, escaped, with links on plain http(s) addresses and code where it has backticks."""
    out, at = Markup(""), 0
    for found in _CODE.finditer(text):
        out += _addresses(text[at : found.start()])
        out += Markup("<code>{}</code>").format(plain(found[1]))
        at = found.end()
    return out + _addresses(text[at:])


def _addresses(text: str) -> Markup:
    out, at = Markup(""), 0
    for found in _ADDRESS.finditer(text):
        address = found[0]
        if plain(address) != address or not address.isascii():
            continue
        out += escape(plain(text[at : found.start()]))
        out += Markup('<a rel="noreferrer" href="{0}">{0}</a>').format(address)
        at = found.end()
    return out + escape(plain(text[at:]))


def _without_switches(lines: list[str]) -> list[str]:
    out: list[str] = []
    inside = False
    for line in lines:
        inside = line.startswith("Switch:") or (inside and line[:1] in (" ", "\t"))
        if not inside:
            out.append(line)
    return out


def _block(lines: list[str]) -> list[Block]:
    """One paragraph of the source: prose, items, and indented lines that are kept as they are."""
    out: list[Block] = []
    kind, held = "", [""]
    for line in lines:
        found = _ITEM.fullmatch(line.strip())
        indented = line[:1] in (" ", "\t")
        if kind == "list" and indented:
            held[-1] += f" {line.strip()}"
            continue
        now = "list" if found and not indented else "code" if indented else "text"
        if now != kind:
            out += _flush(kind, held)
            kind, held = now, []
        held.append(found[1] if now == "list" and found else line.rstrip())
    return [*out, *_flush(kind, held)]


def _flush(kind: str, held: list[str]) -> list[Block]:
    if kind == "text":
        return [Block(kind, (linked(" ".join(held)),))]
    if kind == "list":
        return [Block(kind, tuple(linked(item) for item in held))]
    return [Block(kind, tuple(escape(plain(line)) for line in held))] if kind else []
