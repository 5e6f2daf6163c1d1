"""A series folder as bytes: what the series file names, read but not parsed.

Enough for digests. `folder` parses it; who needs no hunks saves that.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from patchkit.engine.model import SYMLINK
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.series.quilt import MAX_BYTES, NAME, Entry, SeriesFile, parse_series

PATCH_LIMIT = 64 << 20
"""Bytes of one patch; the parser has the same limit."""
FOLDER_LIMIT = 512 << 20
"""Bytes of all patches of a folder together."""
_ENDINGS = (".patch", ".diff")
PROOFS = "proofs"
"""The folder of the proofs, in a series folder."""
_NOT_OURS = (f"{PROOFS}/", ".")


@dataclass(frozen=True)
class Listing:
    """A series folder, its patches as bytes.

    pin: name of the folder, which is the pin's. data: of each entry, in order; None where it
    cannot be had, which `faults` explains by the entry's patch. unlisted: patch files that no
    line names. notes: on those, and on an empty series.
    """

    pin: str
    file: SeriesFile
    data: tuple[bytes | None, ...]
    faults: dict[str, tuple[Finding, ...]]
    unlisted: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines of the series file."""
        return self.file.entries

    @cached_property
    def digests(self) -> dict[str, str]:
        """Patch -> sha256, of those that are there, in order."""
        return {
            entry.patch: hashlib.sha256(data).hexdigest()
            for entry, data in zip(self.entries, self.data, strict=True)
            if data is not None
        }


def read_listing(folder: str | os.PathLike[str]) -> Listing:
    """Read a folder as quilt does: `series` and the patches beside it.

    Raises Refused with every finding of the series file; what is wrong with a patch file
    (missing-patch, symlink-in-path, too-large) is in `faults`.
    """
    root = Root(folder)
    file = _series_file(root)
    data: list[bytes | None] = []
    faults: dict[str, tuple[Finding, ...]] = {}
    left = FOLDER_LIMIT
    with root.held():
        for entry in file.entries:
            try:
                found = _patch_bytes(root, entry, left)
            except Refused as refusal:
                faults[entry.patch] = refusal.findings
                data.append(None)
            else:
                left -= len(found)
                data.append(found)
    unlisted = _unlisted(root.walk(), file)
    notes = [_unlisted_note(name, root.at) for name in unlisted]
    if not file.entries:
        note = Finding(
            "unused", "the series names no patch: 0 patches", Where(file=NAME), note=True
        )
        notes.append(note)
    pin = os.path.basename(os.path.abspath(os.fspath(folder)))
    return Listing(pin, file, tuple(data), faults, tuple(unlisted), tuple(notes))


def _series_file(root: Root) -> SeriesFile:
    file = root.get(NAME, MAX_BYTES)
    if file is None or file.mode == SYMLINK:
        raise Refused(
            Finding(
                "missing-patch",
                f"{root.at} holds no series file",
                Where(file=NAME),
                expected="a file named series that lists the patches in order",
                found="a link" if file else "nothing",
                next="name a folder with --series, or start one with patchkit init",
            )
        )
    return parse_series(file.data)


def _patch_bytes(root: Root, entry: Entry, left: int) -> bytes:
    file = root.get(entry.patch, min(PATCH_LIMIT, left))
    if file is None:
        raise Refused(
            Finding(
                "missing-patch",
                f"series line {entry.line} names {entry.patch}, which is not there",
                Where(file=NAME, line=entry.line),
                expected=f"a file {entry.patch} beside the series file",
                found="nothing" if root.stat(entry.patch) is None else "a folder or special file",
                next=f"add {entry.patch}, or take line {entry.line} out of the series",
            )
        )
    if file.mode == SYMLINK:
        # A series from the net could show any file of the machine through a link.
        raise Refused(
            Finding(
                "symlink-in-path",
                f"series line {entry.line}: {entry.patch} is a symbolic link",
                Where(file=NAME, line=entry.line),
                expected="a regular file",
                found="a link",
                next="put the file itself there",
            )
        )
    return file.data


def _unlisted(paths: Iterable[str], series: SeriesFile) -> list[str]:
    named = set(series.names())
    return [
        path
        for path in sorted(paths)
        if path.endswith(_ENDINGS) and path not in named and not path.startswith(_NOT_OURS)
    ]


def _unlisted_note(name: str, folder: str) -> Finding:
    path = os.path.join(os.path.relpath(folder), name)
    return Finding(
        "unused",
        f"{name} is not in the series: no line names it, so it is not applied",
        Where(patch=name),
        expected="each patch file of the folder in the series",
        found="no line" + (" (a line that begins with # is a comment)" if name[0] == "#" else ""),
        next=f"patchkit import {show_path(path)}, where it belongs to the series",
        note=True,
    )
