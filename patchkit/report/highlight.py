"""Source lines as HTML: six classes of words, nothing raw.

pygments reads the whole file, since a hunk may begin inside a string. It is installed in any
case (rich needs it); what it does not know, and files that are large, stay plain.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from patchkit.engine.model import File
from patchkit.engine.plain import plain_but_tabs

LARGEST = 600_000
"""Bytes of a file that is coloured."""

_CLASSES = (
    ("Token.Comment", "c"),
    ("Token.Literal.String", "s"),
    ("Token.Literal.Number", "n"),
    ("Token.Keyword", "k"),
    ("Token.Operator.Word", "k"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Decorator", "d"),
    ("Token.Name.Builtin", "d"),
)
Piece = tuple[str, str]
"""A class ("" for none) and a text."""


class Coloured:
    """A file's lines, read only as far as they are asked for."""

    def __init__(self, path: str, file: File | None) -> None:
        self._lines: list[list[Piece]] = [[]]
        self._more: Iterator[tuple[Any, Any, str]] = iter(())
        if file is not None and len(file.data) <= LARGEST and b"\0" not in file.data[:8000]:
            lexer = _lexer(path.rpartition("/")[2])
            if lexer is not None:
                text = file.data.decode("utf-8", "surrogateescape")
                self._more = lexer.get_tokens_unprocessed(text)

    def line(self, number: int, content: bytes) -> Markup:
        """Line `number` (1-based) in colour; without, where the file says something else there."""
        while len(self._lines) <= number:
            token = next(self._more, None)
            if token is None:
                break
            mark = _class(token[1])
            first, *rest = token[2].split("\n")
            self._lines[-1].append((mark, first))
            self._lines.extend([(mark, part)] for part in rest)
        text = content.decode("utf-8", "surrogateescape").removesuffix("\n")
        pieces = self._lines[number - 1] if 0 < number <= len(self._lines) else []
        return _html(pieces if "".join(p[1] for p in pieces) == text else [("", text)])


@lru_cache(maxsize=64)
def _lexer(name: str) -> Any:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    name = name[:-1] if name.endswith((".cuh", ".hip")) else name
    try:
        return get_lexer_for_filename(name)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _class(kind: Any) -> str:
    return next((mark for prefix, mark in _CLASSES if str(kind).startswith(prefix)), "")


def _html(pieces: list[Piece]) -> Markup:
    joined: list[Piece] = []
    for mark, text in pieces:
        if joined and joined[-1][0] == mark:
            joined[-1] = (mark, joined[-1][1] + text)
        elif text:
            joined.append((mark, text))
    return Markup("").join(
        Markup('<i class="{}">{}</i>').format(mark, _safe(text)) if mark else _safe(text)
        for mark, text in joined
    )


def _safe(text: str) -> Markup:
    return escape(plain_but_tabs(text))
