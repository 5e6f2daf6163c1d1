"""RFC 2047 words and RFC 5322 names and dates, as far as a patch header needs them."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"=\?([\w!#$%&'*+.^`{|}~-]+)\?([bBqQ])\?([^?\s]*)\?=")
_ZONE = re.compile(r"(?:[+-][0-9]{4}|GMT|UTC?|Z)(?:\s*\(.*\))?\s*")
_SPECIAL = re.compile(r'[()<>\[\]:;@\\,."]')
_USUAL_DATE = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(\d\d?) "
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)",
    re.ASCII,
)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_LONGEST_DATE = 1000
"""Characters of the longest date: a line of a mail has 998 (RFC 5322)."""


def decode_words(text: str) -> str:
    """`text` with every encoded word decoded; one that cannot be decoded stays as it is."""
    if "=?" not in text:
        return text
    out = ""
    at = 0
    joins = False
    for word in _WORD.finditer(text):
        gap = text[at : word.start()]
        decoded = _decoded(word)
        # RFC 2047: blanks between two encoded words only fold the line.
        if not (joins and decoded is not None and not gap.strip()):
            out += gap
        out += word[0] if decoded is None else decoded
        joins = decoded is not None
        at = word.end()
    return out + text[at:]


def has_encoded_word(text: str) -> bool:
    """Whether some part of `text` looks encoded. git fails on a broken word, so "=?" is enough."""
    return "=?" in text


def one_line(text: str) -> str:
    """`text` with every run of blanks and line ends as one blank, as git reads a header."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


def encode_text(text: str) -> str:
    """`text` as one run of encoded words; only for text that would else be read as encoded."""
    words = []
    part = ""
    for char in text:
        piece = _quoted(char)
        if len(part) + len(piece) > 50:
            words.append(part)
            part = ""
        part += piece
    words.append(part)
    return " ".join(f"=?UTF-8?q?{word}?=" for word in words)


@lru_cache  # a series has few authors
def unquote_author(value: str) -> str:
    """`"Name, X" <a@b>` and `=?UTF-8?q?…?= <a@b>` as `Name, X <a@b>`."""
    found = _name_and_mail(value.strip())
    if found is None:
        return decode_words(value.strip())
    name, mail = found
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    return f"{decode_words(name)} <{mail.strip()}>".strip()


def quote_author(author: str) -> str:
    """The value of a From: line that reads back as `author`."""
    found = _name_and_mail(author)
    if found is None:
        return author
    name, mail = found
    if _SPECIAL.search(name.replace(".", "")):
        name = '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
    return f"{name} <{mail}>".strip()


def _name_and_mail(author: str) -> tuple[str, str] | None:
    """The two halves of `Name <mail>`; None for anything else."""
    name, opened, mail = author.rstrip().rpartition("<")
    name = name.rstrip()
    if not opened or not mail.endswith(">") or ">" in mail[:-1] or "\n" in name:
        return None
    return name, mail[:-1]


@lru_cache
def git_date(value: str) -> str | None:
    """A Date: field as git takes it, `SECONDS +ZONE`; None where it is no date with a zone."""
    from datetime import datetime, timezone

    parts, offset = _usual_date(value) or _any_date(value)
    try:
        if not parts or not 1969 <= parts[0] <= 2099 or abs(offset) > 14 * 3600:
            return None
        year, month, day, hour, minute, second = parts
        # ValueError: there is no such day
        when = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    seconds = int(when.timestamp()) - offset
    if seconds < 0:
        return None
    sign = "-" if offset < 0 else "+"
    minutes = abs(offset) // 60
    return f"{seconds} {sign}{minutes // 60:02d}{minutes % 60:02d}"


def _usual_date(value: str) -> tuple[tuple[int, ...], int] | None:
    """Date, time and offset in seconds of a date as git and mail programs write it."""
    stated = _USUAL_DATE.fullmatch(value)
    if stated is None:
        return None
    day, month, year, *time, sign, hours, minutes = stated.groups()
    offset = int(hours) * 3600 + int(minutes) * 60
    date = (int(year), _MONTHS.index(month) // 3 + 1, int(day), *map(int, time))
    return date, -offset if sign == "-" else offset


def _any_date(value: str) -> tuple[tuple[int, ...], int]:
    """The same of any RFC 5322 date; () where it is none."""
    from email.utils import parsedate_tz  # takes longer to import than some commands take

    if len(value) > _LONGEST_DATE:
        return (), 0
    stated = re.search(r"(?:\s|^)(\S+(?:\s*\(.*\))?)\s*$", value)
    if stated is None or not _ZONE.fullmatch(stated[1]):
        return (), 0
    try:
        parts = parsedate_tz(value)
    except (ValueError, IndexError, TypeError, OverflowError):
        return (), 0
    return (parts[:6], parts[9] or 0) if parts is not None else ((), 0)


def mail_date(seconds: int, minutes: int = 0) -> str:
    """A Date: field for a moment (seconds since 1970, UTC) in a zone `minutes` east of UTC."""
    from datetime import datetime, timedelta, timezone
    from email.utils import format_datetime

    zone = timezone(timedelta(minutes=minutes))
    return format_datetime(datetime.fromtimestamp(seconds, zone))


def _decoded(word: re.Match[str]) -> str | None:
    import base64
    import binascii

    charset, kind, body = word[1], word[2].lower(), word[3]
    try:
        raw = body.encode("ascii")
        if kind == "b":
            data = base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
        else:
            data = binascii.a2b_qp(raw, header=True)
        text = data.decode(charset.split("*")[0])
        # Python knows charsets that give half a character (unicode_escape); no file can hold one.
        text.encode()
    except (UnicodeError, LookupError, ValueError):
        return None
    # A decoded line end or NUL would make new header lines out of a name.
    return re.sub(r"[\0\r\n]+", " ", text)


def _quoted(char: str) -> str:
    if char == " ":
        return "_"
    if char.isascii() and (char.isalnum() or char in "!*+-/"):
        return char
    return "".join(f"={byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))
