"""Reads a whole tree back and names every object that is missing or damaged."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.engine.model import GITLINK, path_text
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.store.folders import FOLDER, parse_folder
from patchkit.store.pipes import ObjectReader

_BATCH = 256


def verify_tree(objects: ObjectReader, tree: str, *, partial: bool = False) -> tuple[Finding, ...]:
    """A finding (verify-failed) for each object below `tree` that does not hold.

    partial: blobs that are not there are in order (those of a git server come when needed).
    """
    return tuple(_below(objects, tree, "", partial))


def _below(objects: ObjectReader, oid: str, path: str, partial: bool) -> Iterator[Finding]:
    try:
        raw = objects.read(oid, "tree")
    except EnvironmentFault as error:
        yield _finding(error, oid, path or "(the root)")
        return
    lead = path + "/" if path else ""
    blobs: list[tuple[str, str]] = []
    for name, entry in parse_folder(raw).items():
        at = lead + path_text(name)
        if entry.mode == FOLDER:
            yield from _below(objects, entry.oid.hex(), at, partial)
        elif entry.mode != GITLINK:
            blobs.append((at, entry.oid.hex()))
    if partial:
        absent = set(objects.absent(oid for _, oid in blobs)) if blobs else set()
        blobs = [(at, oid) for at, oid in blobs if oid not in absent]
    for start in range(0, len(blobs), _BATCH):
        yield from _blobs(objects, blobs[start : start + _BATCH])


def _blobs(objects: ObjectReader, blobs: list[tuple[str, str]]) -> Iterator[Finding]:
    try:
        for _ in objects.read_many((oid for _, oid in blobs), "blob"):
            pass
    except EnvironmentFault:
        # One of them does not hold: ask for each alone, to name every one.
        for path, oid in blobs:
            try:
                objects.read(oid, "blob")
            except EnvironmentFault as error:
                yield _finding(error, oid, path)


def _finding(error: EnvironmentFault, oid: str, path: str) -> Finding:
    return Finding(
        "verify-failed",
        "a base file in patchkit's cache is not what its id says",
        Where(file=path),
        expected=oid,
        found=error.findings[0].found or error.findings[0].message,
        next="patchkit cache --clear, then run the command again",
    )
