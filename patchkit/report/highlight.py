"""Source lines as HTML: six classes of words, nothing raw.

A line of a diff needs no whole lexer: it is cut into words, strings and comments by itself. What
it cannot know, whether it begins inside a string or comment of several lines, is read off the
file, once for each content.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from markupsafe import Markup, escape

from patchkit.engine.model import File
from patchkit.engine.plain import plain_but_tabs
from patchkit.report.languages import Language, language_of

LARGEST = 4 << 20
"""Bytes of a file that is looked at for what its lines begin inside of."""
LONGEST = 2000
"""Characters of a line that is coloured."""

_FILES = 32
_LINES = 20_000
Span = tuple[int, int, str]
"""A string or comment of several lines: its first and last line, and what it begins with."""


class Coloured:
    """A file's lines in colour."""

    def __init__(self, path: str, file: File | None) -> None:
        self._language = language_of(path.rpartition("/")[2])
        self._data = b""
        if file is not None and len(file.data) <= LARGEST and b"\0" not in file.data[:8000]:
            self._data = file.data

    def line(self, number: int, content: bytes) -> Markup:
        """`content`, which is line `number` (1-based) of the file, in colour."""
        text = content.decode("utf-8", "surrogateescape").removesuffix("\n")
        if self._language is None or len(text) > LONGEST:
            return _safe(text)
        return _html(self._language, self._inside(number), text)

    def _inside(self, number: int) -> str:
        """What the line begins inside of: the opening of a string or comment, "" for nothing."""
        if self._language is None or not self._data:
            return ""
        spans = _spans(self._language, self._data)
        at = bisect_left(spans, (number,)) - 1
        return spans[at][2] if at >= 0 and number <= spans[at][1] else ""


@lru_cache(maxsize=_FILES)
def _spans(language: Language, data: bytes) -> tuple[Span, ...]:
    """The strings and comments of several lines, in order."""
    if language.blocks is None:
        return ()
    out: list[Span] = []
    at, line = 0, 1
    for found in language.blocks.finditer(data):
        lines = data.count(b"\n", *found.span())
        if lines:
            line += data.count(b"\n", at, found.start())
            opening = (found["open"] or b"").decode("ascii", "replace")
            out.append((line, line + lines, opening))
            line += lines
            at = found.end()
    return tuple(out)


@lru_cache(maxsize=_LINES)
def _html(language: Language, inside: str, text: str) -> Markup:
    out: list[str] = []
    at = 0
    if inside:
        mark, at = language.rest_of(inside, text)
        out.append(_marked(mark, text[:at]))
    for start, end, mark in language.words_of(text, at):
        out.append(_marked("", text[at:start]))
        out.append(_marked(mark, text[start:end]))
        at = end
    out.append(_marked("", text[at:]))
    return Markup("".join(out))


def _marked(mark: str, text: str) -> str:
    if not text or not mark:
        return _safe(text)
    return f'<i class="{mark}">{_safe(text)}</i>'


def _safe(text: str) -> Markup:
    return escape(plain_but_tabs(text))
