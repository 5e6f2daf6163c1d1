"""Names and lines as text: git's C-style quoting, and what may reach a terminal.

A patch names files by bytes. git writes a name plainly where it can and between double
quotes with backslash escapes where it cannot. Messages show names and source lines so that
no control byte leaves the program and nothing invisible stays invisible.
"""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = {
    ord("a"): 7,
    ord("b"): 8,
    ord("t"): 9,
    ord("n"): 10,
    ord("v"): 11,
    ord("f"): 12,
    ord("r"): 13,
    ord('"'): 34,
    ord("\\"): 92,
}
_LETTERS = {value: bytes((92, key)) for key, value in _ESCAPES.items()}
_QUOTE, _BACKSLASH = 34, 92
_NEEDS_QUOTE = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_NEEDS_QUOTE_LOW = re.compile(rb'[\x00-\x1f"\\\x7f]')


def read_quoted(text: bytes, start: int = 0) -> tuple[bytes, int] | None:
    """The name quoted at `text[start]` and the index after its closing quote.

    None where no well-formed quoted name begins there: as git, which then reads the line as
    a plain name.
    """
    if text[start : start + 1] != b'"':
        return None
    out = bytearray()
    at, end = start + 1, len(text)
    while at < end:
        byte = text[at]
        if byte == _QUOTE:
            return bytes(out), at + 1
        if byte != _BACKSLASH:
            out.append(byte)
            at += 1
            continue
        at += 1
        if at == end:
            return None
        byte = text[at]
        if byte in _ESCAPES:
            out.append(_ESCAPES[byte])
            at += 1
            continue
        octal = text[at : at + 3]
        # git takes exactly three octal digits, the first at most 3
        if not re.fullmatch(rb"[0-3][0-7]{2}", octal):
            return None
        out.append(int(octal, 8))
        at += 3
    return None


def c_unquote(quoted: bytes) -> bytes:
    """The bytes that git's quoted form `"…"` stands for.

    Raises ValueError where the text is not one whole quoted name.
    """
    read = read_quoted(quoted)
    if read is None or read[1] != len(quoted):
        raise ValueError(f"not a quoted name: {quoted!r}")
    return read[0]


def c_quote(raw: bytes, *, high: bool = True) -> bytes:
    """A name as git writes it in a patch: plain where it can be, else quoted.

    high: whether bytes from 0x80 are escaped too (git's core.quotePath, on by default).
    """
    needs = _NEEDS_QUOTE if high else _NEEDS_QUOTE_LOW
    if not needs.search(raw):
        return raw
    return b'"' + needs.sub(lambda m: _escape(m[0][0]), raw) + b'"'


def _escape(byte: int) -> bytes:
    return _LETTERS.get(byte) or b"\\%03o" % byte


def show_path(path: str) -> str:
    """A path (or a patch's name) for a person, safe to print.

    Shown as it is where every character prints; else between quotes with git's escapes. A
    plain backslash does not need quotes: names made on Windows stay recognisable.
    """
    if path.isprintable() and not path.startswith('"'):
        return path
    out = []
    for char in path:
        if char in '"\\':
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        else:
            raw = char.encode("utf-8", "surrogateescape")
            out.append(b"".join(_escape(byte) for byte in raw).decode("ascii"))
    return '"' + "".join(out) + '"'


def show_line(line: bytes, limit: int = 160) -> str:
    r"""A source line for a person: one line, no control bytes, invisible things named.

    The final line feed is left out, a carriage return shows as \r, a tab as \t, a byte that
    is not UTF-8 as \xNN, and a character that looks like a space or like nothing as <U+00A0>.
    At most `limit` characters are shown, then the length in bytes.
    """
    line = line.removesuffix(b"\n")
    # Cut before decoding: a line may have megabytes. Four bytes hold any character.
    head = line[: 4 * limit + 4].decode("utf-8", "backslashreplace")
    cut = len(head) > limit
    shown = "".join(_show_char(char) for char in head[:limit])
    if cut:
        shown += f"… ({len(line)} bytes)"
    return shown


def _show_char(char: str) -> str:
    if " " <= char <= "~":
        return char
    if char == "\t":
        return "\\t"
    if char == "\r":
        return "\\r"
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if char.isprintable() and unicodedata.category(char) != "Zs":
        return char
    return f"<U+{code:04X}>"
