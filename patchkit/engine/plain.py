"""Text that is safe to show: what a patch or a name holds never reaches a terminal raw."""

from __future__ import annotations

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """`text` with control, direction and undecodable characters as octal escapes (\\033)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(c) for c in text)


def plain_but_tabs(text: str) -> str:
    """As `plain`, but tabs stay: for source lines."""
    return "\t".join(plain(part) for part in text.split("\t"))


def _safe(c: str) -> str:
    code = ord(c)
    if c == "\t":
        return "\\t"
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\{code:03o}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\{code - 0xDC00:03o}"
    if c in _BIDI or c in "\u2028\u2029" or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04x}"
    return c
