"""The record of loose patches in a folder: `.patchkit/state.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where, unreadable
from patchkit.files.root import OWN, Root
from patchkit.series.lockfile import Blob

STATE = "state.json"
FORMAT = 1
MAX_RECORD = 64 << 20


@dataclass(frozen=True)
class Applied:
    """One patch that was applied: its name, its digest, and each path before and after."""

    patch: str
    sha256: str
    paths: Mapping[str, tuple[Blob | None, Blob | None]]


@dataclass(frozen=True)
class Record:
    """Patches in the order in which they were applied."""

    applied: tuple[Applied, ...] = ()

    def before(self) -> dict[str, Blob | None]:
        """Every touched path as it was before the first patch."""
        found: dict[str, Blob | None] = {}
        for row in self.applied:
            for path, (old, _) in row.paths.items():
                found.setdefault(path, old)
        return found

    def now(self) -> dict[str, Blob | None]:
        """Every touched path as the last patch left it."""
        return {path: new for row in self.applied for path, (_, new) in row.paths.items()}


def blob(file: File | None) -> Blob | None:
    """A file by mode and id."""
    return Blob(file.mode, file.oid) if file is not None else None


def read_record(at: str) -> Record:
    """The record of the folder `at`; empty where there is none. Raises Refused(journal)."""
    where = os.path.join(at, OWN, STATE)
    if not os.path.lexists(where):
        return Record()
    try:
        found = Root(at).get(f"{OWN}/{STATE}", MAX_RECORD)
        if found is None or found.mode == SYMLINK:
            raise ValueError("not a file")
        body = json.loads(found.data)
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']}")
        return Record(tuple(_row(row) for row in body["applied"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(
            Finding(
                "journal",
                f"the record of what was applied cannot be read: {unreadable(error)}",
                Where(file=where),
                expected=f"a record of format {FORMAT}",
                next=f"restore the folder from its source, or remove {where} to keep it as it is; "
                f"the old files stand in {os.path.join(at, OWN, 'base')}, compressed",
            )
        ) from error


def dump_record(record: Record) -> bytes:
    """The record as it stands in its file."""
    body = {
        "format": FORMAT,
        "applied": [
            {
                "patch": row.patch,
                "sha256": row.sha256,
                "paths": {p: [_text(old), _text(new)] for p, (old, new) in row.paths.items()},
            }
            for row in record.applied
        ],
    }
    return (json.dumps(body, indent=1) + "\n").encode("ascii")


def _text(entry: Blob | None) -> str | None:
    return str(entry) if entry is not None else None


def _row(row: Mapping[str, object]) -> Applied:
    patch, sha256, paths = row["patch"], row["sha256"], row["paths"]
    if not isinstance(patch, str) or not isinstance(sha256, str) or not isinstance(paths, dict):
        raise ValueError("a row is not complete")
    for path in paths:
        reason = unsafe(path)
        if reason is not None:
            raise ValueError(f"a path may not be used: {reason}")
    return Applied(patch, sha256, {p: (_blob(old), _blob(new)) for p, (old, new) in paths.items()})


def _blob(text: object) -> Blob | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) != 47:
        raise ValueError("not a mode and a blob id")
    mode, oid = int(text[:6], 8), text[7:]
    if mode not in (REGULAR, EXECUTABLE, SYMLINK) or int(oid, 16) < 0:
        raise ValueError("not a mode and a blob id")
    return Blob(mode, oid)
