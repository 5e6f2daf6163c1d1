"""A series for other tools: a quilt folder, one mailbox for git am, one diff, numbered files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from patchkit.authoring.incoming import GUARD_FIELD, NAME_FIELD
from patchkit.derive.derive import Derived
from patchkit.engine.model import File, Tree
from patchkit.series.quilt import Entry
from patchkit.series.writer import write_diff

FORMATS = ("quilt", "am", "single", "dir")
_POSTMARK = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
_BEGINS = re.compile(rb"^From (?=.*\d\d:\d\d)", re.MULTILINE)


def export(derived: Derived, base: Tree, form: str, taken: Sequence[Entry]) -> dict[str, bytes]:
    """File name -> bytes of the selection in a format of `FORMATS`.

    quilt keeps every patch's bytes, strip level, -R and guard, so that importing it gives the
    same series. am keeps name and guard in mail headers, dir where the file's name does not say
    them. am and dir are for patches of strip level 1; ValueError names others.
    """
    patches = {outcome.patch.name: outcome.patch.data for outcome in derived.outcomes}
    if form == "quilt":
        lines = "".join(entry.text() + "\n" for entry in taken)
        return {"series": lines.encode(), **{e.patch: patches[e.patch] for e in taken}}
    if form == "single":
        return {"all.patch": write_diff(base, _together(derived))}
    odd = [e.patch for e in taken if e.strip != 1 or e.reverse]
    if odd:
        raise ValueError(", ".join(odd))
    if form == "am":
        mails = [_POSTMARK + _named(e) + _quoted(patches[e.patch]) + b"\n" for e in taken]
        return {"series.mbox": b"".join(mails)}
    width = max(4, len(str(len(taken))))
    return {
        f"{number:0{width}d}-{entry.patch.replace('/', '-')}": _said(entry) + patches[entry.patch]
        for number, entry in enumerate(taken, 1)
    }


def _together(derived: Derived) -> Mapping[str, File | None]:
    changes: dict[str, File | None] = {}
    for outcome in derived.outcomes:
        changes.update(outcome.changes)
    return changes


def _said(entry: Entry) -> bytes:
    """What a numbered file's name does not say."""
    return _named(entry) if entry.guard is not None or "/" in entry.patch else b""


def _named(entry: Entry) -> bytes:
    """Mail headers that git passes over and `import` reads: what else the series file says."""
    lines = f"{NAME_FIELD}: {entry.patch}\n"
    if entry.guard is not None:
        lines += f"{GUARD_FIELD}: {entry.guard}\n"
    return lines.encode("utf-8", "surrogateescape")


def _quoted(data: bytes) -> bytes:
    """A mail whose text has no line that begins a new mail, as `git am` and `import` see it."""
    head, mark, diff = data.partition(b"\n---\n")
    return _BEGINS.sub(b">From ", head) + mark + diff
