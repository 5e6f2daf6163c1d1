"""A series folder, read whole: the series file, every patch it names, and what it does not name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

from patchkit.engine.model import Patch
from patchkit.engine.parse import parse
from patchkit.errors import Finding, Refused
from patchkit.files.root import Root
from patchkit.series.header import Header, parse_header
from patchkit.series.listing import PATCH_LIMIT, PROOFS, Listing, read_listing
from patchkit.series.quilt import Entry, SeriesFile, selects

__all__ = ["PATCH_LIMIT", "PROOFS", "Series", "parse_listing", "proof_digests", "read_series"]


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
    return parse_listing(read_listing(folder), strict=strict)


def parse_listing(listing: Listing, *, strict: bool = True, first: int = 0) -> Series:
    """The series of a folder that was read. first: entries before it are left out, unparsed."""
    findings: list[Finding] = []
    entries: list[Entry] = []
    patches: list[Patch] = []
    headers: list[Header] = []
    for entry, data in zip(listing.entries[first:], listing.data[first:], strict=True):
        if data is None:
            findings.extend(_in(entry, f) for f in listing.faults[entry.patch])
            continue
        try:
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
    return Series(
        listing.pin,
        listing.file,
        tuple(entries),
        tuple(patches),
        tuple(headers),
        listing.unlisted,
        (*findings, *listing.notes),
    )


def proof_digests(folder: str | os.PathLike[str]) -> dict[str, str]:
    """sha256 of every file of the proofs, by path below the series folder; results left out."""
    root = Root(folder)
    out = {}
    for path in sorted(root.walk(PROOFS)) if root.is_folder(PROOFS) else ():
        parts = path.split("/")
        if parts[1] == "results" or any(p[0] == "." or p == "__pycache__" for p in parts):
            continue
        file = root.get(path, PATCH_LIMIT)
        if file is not None:
            out[path] = hashlib.sha256(file.data).hexdigest()
    return out


def _in(entry: Entry, finding: Finding) -> Finding:
    return finding if finding.where.patch else finding.in_patch(entry.patch)
