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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.lock import locked

_KEEP = 6000
"""Lines kept in one file: a dozen states of a series of 500 patches, 1 MB."""


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

    def read(self, group: str) -> dict[str, Result]:
        """All results of a group, oldest first; a line that does not hold is passed over."""
        path = self._path(group)
        found: dict[str, Result] = {}
        if not os.path.exists(path):
            return found
        for line in read_file(path).splitlines():
            entry = _parse(line)
            if entry is not None:
                found[entry[0]] = entry[1]
        return found

    def add(self, group: str, results: Mapping[str, Result]) -> None:
        """Add or replace results; other processes' lines are kept."""
        path = self._path(group)
        make_folder(self.folder)
        with locked(path + ".lock"):
            known = self.read(group)
            if all(known.get(key) == result for key, result in results.items()):
                return
            for key, result in results.items():
                known.pop(key, None)
                known[key] = result
            lines = [_line(key, result) for key, result in list(known.items())[-_KEEP:]]
            write_file(path, b"".join(lines))

    def longest(self, keys: Sequence[str], group: str = "") -> list[tuple[int, Result]]:
        """Known results of `keys`, the last key first, with their places in it."""
        known = self.read(group or keys[0]) if keys else {}
        return [(at, known[keys[at]]) for at in reversed(range(len(keys))) if keys[at] in known]


def _line(key: str, result: Result) -> bytes:
    body = json.dumps([key, list(result.ids), result.text], separators=(",", ":"))
    return f"{_check(body)} {body}\n".encode("ascii")


def _parse(line: bytes) -> tuple[str, Result] | None:
    """One line; None where it was cut or changed (its check does not hold)."""
    check, _, body = line.decode("ascii", "replace").partition(" ")
    if check != _check(body):
        return None
    key, ids, text = json.loads(body)
    return key, Result(tuple(ids), text)


def _check(body: str) -> str:
    return hashlib.sha1(body.encode(), usedforsecurity=False).hexdigest()[:12]
