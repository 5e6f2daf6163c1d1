"""Results by key: ids that a computation gave before, so that it need not run again.

One small file for each group of keys, a JSON line each, replaced as a whole. A group is what is
looked up together: every prefix of one series is in the group of its first patch, so the longest
known prefix takes one file. The lines only say where to look: whoever uses an id reads the object,
and every object read is checked against its id.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.lock import locked

_KEEP = 6000
"""Lines kept in one file: a dozen states of a series of 500 patches, 1 MB."""

_DIGITS = 32
"""Hex digits of a key's digest at the beginning of its line: found without parsing the others."""


@dataclass(frozen=True)
class Result:
    """What a key gave: object ids, and a text of the caller's own (JSON, say)."""

    ids: tuple[str, ...]
    text: str = ""


def key_of(*parts: str | bytes) -> str:
    """A key made of parts, none of which can run into the next: 64 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()


class Results:
    """The files below `folder`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def _path(self, group: str) -> str:
        return os.path.join(self.folder, key_of(group)[:32])

    def _lines(self, group: str) -> dict[bytes, bytes]:
        """The lines of a group by the digest they begin with, oldest first, not yet judged."""
        path = self._path(group)
        if not os.path.exists(path):
            return {}
        lines: dict[bytes, bytes] = {}
        for line in read_file(path).splitlines():
            lines.pop(line[:_DIGITS], None)
            lines[line[:_DIGITS]] = line
        return lines

    def read(self, group: str) -> dict[str, Result]:
        """All results of a group, oldest first; a line that does not hold is passed over."""
        entries = (_parse(line) for line in self._lines(group).values())
        return {entry[0]: entry[1] for entry in entries if entry is not None}

    def add(self, group: str, results: Mapping[str, Result]) -> None:
        """Add or replace results; other processes' lines are kept."""
        path = self._path(group)
        make_folder(self.folder)
        new = {_digest(key): _line(key, result) for key, result in results.items()}
        with locked(path + ".lock"):
            lines = self._lines(group)
            if all(lines.get(digest) == line for digest, line in new.items()):
                return
            for digest, line in new.items():
                lines.pop(digest, None)
                lines[digest] = line
            write_file(path, b"".join(line + b"\n" for line in list(lines.values())[-_KEEP:]))

    def longest(self, keys: Sequence[str], group: str = "") -> Iterator[tuple[int, Result]]:
        """Known results of `keys`, the last key first, with their places in it."""
        lines = self._lines(group or keys[0]) if keys else {}
        for at in reversed(range(len(keys))):
            line = lines.get(_digest(keys[at]))
            entry = _parse(line) if line is not None else None
            if entry is not None and entry[0] == keys[at]:
                yield at, entry[1]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS].encode()


def _line(key: str, result: Result) -> bytes:
    body = json.dumps([key, list(result.ids), result.text], separators=(",", ":")).encode("ascii")
    return b"%s %s %s" % (_digest(key), _check(body), body)


def _parse(line: bytes) -> tuple[str, Result] | None:
    """One line; None where it was cut or changed (its check does not hold), or has another form."""
    _, _, rest = line.partition(b" ")
    check, _, body = rest.partition(b" ")
    if check != _check(body):
        return None
    try:
        key, ids, text = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None  # a line of another version of patchkit
    texts = [key, text, *ids] if isinstance(ids, list) else [None]
    return (key, Result(tuple(ids), text)) if all(isinstance(t, str) for t in texts) else None


def _check(body: bytes) -> bytes:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()[:12].encode()
