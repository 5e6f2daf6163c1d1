"""The quilt `series` file: the strict part of its syntax, and edits that keep every comment.

Readers of series files disagree (quilt, guilt, MQ, gbp, Buildroot, Armbian, StGit). Read here is
what all of them read alike: a name, `-pN`, `-R`, `#` comments, and the guard `#+name` of guilt and
MQ, which is a comment to quilt. What one of them would read otherwise is refused, with the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where

MAX_BYTES = 1 << 20
"""Bytes of a series file; the longest that is read has a third of them."""
MAX_ENTRIES = 5000
"""Patches of a series."""
MAX_STRIP = 64
"""No real patch strips more components; a longer number is a typing error."""
MAX_FAULTS = 100
"""Faults told in one run; the rest would only bury them."""
NAME = "series"

_GUARD = re.compile(r"#\+([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?=\s|$)")
_ANY_GUARD = re.compile(r"#[+-][^-+#\s][^#\s]*")
_STRIP = re.compile(r"-p([0-9]{1,4})")
_INLINE = re.compile(r"(^|[ \t])#")
_WORD = re.compile(r"[^ \t]+")
_COMPRESSED = (".gz", ".bz2", ".xz", ".lzma", ".zst", ".lz")
_ACCEPTED = "accepted are -pN, -R, a comment and one guard #+name"


@dataclass(frozen=True)
class Entry:
    """One line of the series that names a patch.

    patch: name of the file, relative to the series folder. strip: the N of -pN (quilt's default is
    1). guard: name of the guard, None where the patch always applies. line: 1-based line.
    """

    patch: str
    strip: int = 1
    reverse: bool = False
    guard: str | None = None
    line: int = 0

    def text(self) -> str:
        """The canonical line, without line end."""
        words = [self.patch]
        if self.strip != 1:
            words.append(f"-p{self.strip}")
        if self.reverse:
            words.append("-R")
        if self.guard is not None:
            words.append(f"#+{self.guard}")
        return " ".join(words)


@dataclass(frozen=True)
class SeriesFile:
    """A series file, read. `lines` are its lines as they stand, without line ends."""

    entries: tuple[Entry, ...] = ()
    lines: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """The patches in order."""
        return [entry.patch for entry in self.entries]

    def guards(self) -> list[str]:
        """Every guard in use, sorted."""
        return sorted({e.guard for e in self.entries if e.guard is not None})

    def find(self, patch: str) -> Entry:
        """The entry of `patch`; raises Refused(missing-patch) where no line names it."""
        for entry in self.entries:
            if entry.patch == patch:
                return entry
        raise Refused(
            Finding(
                "missing-patch",
                f"no line of the series names {patch}",
                Where(patch=patch),
                expected=f"one of the {len(self.entries)} patches of the series",
                next="patchkit list",
            )
        )


def selects(guards: Iterable[str], entry: Entry) -> bool:
    """Whether a stack with `guards` holds this entry."""
    return entry.guard is None or entry.guard in set(guards)


def parse_series(data: bytes, name: str = NAME) -> SeriesFile:
    """Read a series file. `name` is what messages call it.

    Raises Refused with every finding of the file: line-endings, bad-series-option, path-escape,
    duplicate-entry, too-large.
    """
    lines = _lines(data, name)
    entries: list[Entry] = []
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        entry = _entry(line, number, name)
        if isinstance(entry, Finding):
            findings.append(entry)
        elif entry is not None:
            if len(entries) == MAX_ENTRIES:
                findings.append(_too_many(number, name))
                break
            if entry.patch in first:
                findings.append(_duplicate(entry, first[entry.patch], name))
            first.setdefault(entry.patch, number)
            entries.append(entry)
        if len(findings) == MAX_FAULTS:
            break
    if findings:
        raise Refused(*findings)
    return SeriesFile(tuple(entries), tuple(lines))


def dump_series(series: SeriesFile) -> bytes:
    """The file's bytes: its lines as they were read, each with a line end."""
    return "".join(line + "\n" for line in series.lines).encode()


def entries_digest(entries: Iterable[Entry]) -> str:
    """sha256 of what the entries say (order, options, guards), comments left out; 64 hex digits."""
    text = "".join(entry.text() + "\n" for entry in entries)
    return hashlib.sha256(text.encode()).hexdigest()


def _too_many(line: int, name: str) -> Finding:
    return Finding(
        "too-large",
        f"{name} names more than {MAX_ENTRIES} patches",
        Where(file=name, line=line),
        expected=f"at most {MAX_ENTRIES} patches",
        found=f"patch {MAX_ENTRIES + 1} in line {line}",
        next="join patches, or make a project of each part",
    )


def _lines(data: bytes, name: str) -> list[str]:
    if len(data) > MAX_BYTES:
        raise Refused(
            Finding(
                "too-large",
                f"{name} is larger than {MAX_BYTES} bytes",
                Where(file=name),
                found=f"{len(data)} bytes",
            )
        )
    if b"\r" in data:
        bad = [n for n, line in enumerate(data.split(b"\n"), 1) if b"\r" in line]
        raise Refused(
            Finding(
                "line-endings",
                f"{name} has CRLF line ends (first in line {bad[0]}): "
                "quilt takes the carriage return for a part of the name",
                Where(file=name, line=bad[0]),
                expected="LF line ends",
                found=f"a carriage return in {len(bad)} line(s), the first is line {bad[0]}",
                next=f"write {name} with LF line ends, and add '{name} -text' to .gitattributes",
            )
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Refused(_bad(name, line, "the line is not UTF-8", found="other bytes")) from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _entry(line: str, number: int, name: str) -> Entry | Finding | None:
    """The entry of one line, None for a comment or blank line, or why it is refused."""
    if line.startswith("#") or not line.strip(" \t"):
        return None
    odd = next((c for c in line if (ord(c) < 32 and c != "\t") or ord(c) in _UNSEEN), None)
    if odd is not None:
        return _bad(name, number, f"an invisible character (U+{ord(odd):04X}) stands in the line")
    at = _INLINE.search(line)
    head, comment = (line[: at.end() - 1], line[at.end() - 1 :]) if at else (line, "")
    words = _WORD.findall(head)
    if not words:
        reason = "the comment is indented: quilt reads a patch named '#'"
        return _bad(name, number, reason, next="let the # stand in column 1")
    patch, *options = words
    wrong = _wrong_name(patch, number, name)
    if wrong is not None:
        return wrong
    read = _options(patch, options, number, name)
    if isinstance(read, Finding):
        return read
    guard = _guard(patch, comment, number, name)
    if isinstance(guard, Finding):
        return guard
    return Entry(patch, read[0], read[1], guard, number)


_UNSEEN = frozenset({0x7F, 0xA0, 0xAD, 0xFEFF, *range(0x80, 0xA0), *range(0x200B, 0x2010),
                     *range(0x2028, 0x202F), *range(0x2060, 0x2070)})  # fmt: skip


def _wrong_name(patch: str, number: int, name: str) -> Finding | None:
    if patch.startswith("-"):
        return _bad(name, number, f"{patch} stands where the patch's name must", found=patch)
    reason = unsafe(patch)
    if reason is not None:
        return Finding(
            "path-escape",
            f"{name} line {number} names {patch}: {reason}",
            Where(patch=patch, file=name, line=number),
            expected="a file below the series folder",
            found=patch,
        )
    if patch.endswith(_COMPRESSED):
        return _bad(name, number, f"{patch} is compressed", found=patch, next="unpack it")
    return None


def _options(patch: str, options: list[str], number: int, name: str) -> tuple[int, bool] | Finding:
    strip: int | None = None
    reverse = False
    for word in options:
        stated = _STRIP.fullmatch(word)
        if stated and strip is None and int(stated[1]) <= MAX_STRIP:
            strip = int(stated[1])
        elif word == "-R" and not reverse:
            reverse = True
        else:
            return Finding(
                "bad-series-option",
                f"{name} line {number}: {_option_fault(word)}; {_ACCEPTED}",
                Where(patch=patch, file=name, line=number),
                expected="-pN or -R",
                found=word,
            )
    return (1 if strip is None else strip), reverse


def _option_fault(word: str) -> str:
    if word == "-p":
        return "-p and its number are two words"
    if word == "-R" or _STRIP.fullmatch(word):
        return f"{word} is one too many, or its number is"
    if not word.startswith("-"):
        return f"{word!r} is no option (a name cannot hold a blank)"
    return f"the option {word} is not taken"


def _guard(patch: str, comment: str, number: int, name: str) -> str | Finding | None:
    """The guard that a trailing comment begins with."""
    stated = _GUARD.match(comment)
    rest = comment[stated.end() :] if stated else comment
    fault = ""
    if comment.startswith("#-"):
        fault = f"the guard {comment.split()[0]} is negative: say which stacks have the patch"
    elif comment.startswith("#+") and not stated:
        fault = f"{comment.split()[0]} is no guard: #+ and letters, digits, '.', '_' or '-'"
    elif _ANY_GUARD.search(rest):
        word = _ANY_GUARD.findall(rest)[0]
        fault = f"{word} is a second guard, or stands inside a comment, where MQ reads it as one"
    elif re.fullmatch(r"#\s+[+-][\w.-]+\s*", comment):
        fault = f"{comment.strip()!r} reads like a guard but is a comment"
    elif stated and rest.strip() and not rest.strip().startswith("#"):
        fault = f"{rest.strip()!r} follows the guard: put a # before it"
    if fault:
        return Finding(
            "bad-series-option",
            f"{name} line {number}: {fault}",
            Where(patch=patch, file=name, line=number),
            expected="at most one guard, #+name, right after the name and its options",
            found=comment.strip(),
        )
    return stated[1] if stated else None


def _duplicate(entry: Entry, first: int, name: str) -> Finding:
    return Finding(
        "duplicate-entry",
        f"{name} names {entry.patch} twice, in line {first} and line {entry.line}",
        Where(patch=entry.patch, file=name, line=entry.line),
        expected="each patch once",
        found=f"lines {first} and {entry.line}",
        next=f"delete line {entry.line} of {name}",
    )


def _bad(name: str, number: int, reason: str, found: str = "", next: str = "") -> Finding:
    return Finding(
        "bad-series-option",
        f"{name} line {number}: {reason}",
        Where(file=name, line=number),
        expected=f"a patch's name first; {_ACCEPTED}",
        found=found,
        next=next,
    )
