"""A series folder, read whole: the series file, every patch it names, and what it does not name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

from patchkit.engine.model import SYMLINK, Patch
from patchkit.engine.parse import parse
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.series.header import Header, parse_header
from patchkit.series.quilt import MAX_BYTES, NAME, Entry, SeriesFile, parse_series, selects

PATCH_LIMIT = 64 << 20
"""Bytes of one patch; the parser has the same limit."""
FOLDER_LIMIT = 512 << 20
"""Bytes of all patches of a folder together."""
PROOFS = "proofs"
_ENDINGS = (".patch", ".diff")
_NOT_OURS = (f"{PROOFS}/", ".")


@dataclass(frozen=True)
class Series:
    """A series folder.

    pin: name of the folder, which is the pin's. entries, patches and headers stand side by side,
    in series order. unlisted: patch files that no line names. findings: notes, and, where the
    folder was read with strict=False, the refusals of the patches that are left out above.
    """

    pin: str
    file: SeriesFile
    entries: tuple[Entry, ...]
    patches: tuple[Patch, ...]
    headers: tuple[Header, ...]
    unlisted: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> tuple[Finding, ...]:
        """Why some listed patches are missing above; empty where all are there."""
        return tuple(f for f in self.findings if not f.note)

    def selected(self, guards: Iterable[str] | None) -> tuple[bool, ...]:
        """For each entry whether a stack with these guards holds it; None means every guard."""
        if guards is None:
            return (True,) * len(self.entries)
        have = set(guards)
        return tuple(selects(have, entry) for entry in self.entries)


def read_series(folder: str | os.PathLike[str], *, strict: bool = True) -> Series:
    """Read a folder as quilt does: `series` and the patches beside it.

    Raises Refused with every finding of the series file, and with strict also every finding of
    every patch (missing-patch, symlink-in-path, too-large, and all that the parser refuses).
    Without strict the patches that cannot be read are left out and `findings` says why: for
    commands that go on to report everything, and then fail.
    """
    root = Root(folder)
    series = _series_file(root)
    findings: list[Finding] = []
    entries: list[Entry] = []
    patches: list[Patch] = []
    headers: list[Header] = []
    left = FOLDER_LIMIT
    for entry in series.entries:
        try:
            data = _patch_bytes(root, entry, left)
            left -= len(data)
            patch = parse(data, entry.patch)
            header = parse_header(patch.header)
        except Refused as refusal:
            findings.extend(_in(entry, f) for f in refusal.findings)
            continue
        findings.extend(_in(entry, f) for f in patch.notes)
        entries.append(entry)
        patches.append(patch)
        headers.append(header)
    if strict and any(not f.note for f in findings):
        raise Refused(*(f for f in findings if not f.note))
    unlisted = _unlisted(root, series)
    findings.extend(_unlisted_note(name) for name in unlisted)
    if not series.entries:
        note = Finding(
            "unused", "the series names no patch: 0 patches", Where(file=NAME), note=True
        )
        findings.append(note)
    return Series(
        os.path.basename(os.path.abspath(os.fspath(folder))),
        series,
        tuple(entries),
        tuple(patches),
        tuple(headers),
        tuple(unlisted),
        tuple(findings),
    )


def proof_digests(folder: str | os.PathLike[str]) -> dict[str, str]:
    """sha256 of every file of the proofs, by path below the series folder; results left out."""
    root = Root(folder)
    out = {}
    for path in sorted(root.walk(PROOFS)) if root.is_folder(PROOFS) else ():
        parts = path.split("/")
        if parts[1] == "results" or "__pycache__" in parts or parts[-1].startswith("."):
            continue
        file = root.get(path, PATCH_LIMIT)
        if file is not None:
            out[path] = hashlib.sha256(file.data).hexdigest()
    return out


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


def _unlisted(root: Root, series: SeriesFile) -> list[str]:
    named = set(series.names())
    return [
        path
        for path in sorted(root.walk())
        if path.endswith(_ENDINGS) and path not in named and not path.startswith(_NOT_OURS)
    ]


def _unlisted_note(name: str) -> Finding:
    return Finding(
        "unused",
        f"{name} is not in the series: no line names it, so it is not applied",
        Where(patch=name),
        expected="each patch file of the folder in the series",
        found="no line" + (" (a line that begins with # is a comment)" if name[0] == "#" else ""),
        note=True,
    )


def _in(entry: Entry, finding: Finding) -> Finding:
    return finding if finding.where.patch else finding.in_patch(entry.patch)
