"""A series for other tools: a quilt folder, one mailbox for git am, one diff, numbered files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchkit.derive.derive import Derived
from patchkit.engine.model import File, Tree
from patchkit.series.quilt import Entry
from patchkit.series.writer import write_diff

FORMATS = ("quilt", "am", "single", "dir")
_POSTMARK = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"


def export(derived: Derived, base: Tree, form: str, taken: Sequence[Entry]) -> dict[str, bytes]:
    """File name -> bytes of the selection in a format of `FORMATS`.

    quilt keeps every patch's bytes, strip level, -R and guard, so that importing it gives the
    same series. am and dir are for patches of strip level 1; ValueError names others.
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
        mails = [_POSTMARK + _quoted(patches[e.patch]) + b"\n" for e in taken]
        return {"series.mbox": b"".join(mails)}
    width = max(4, len(str(len(taken))))
    return {
        f"{number:0{width}d}-{entry.patch.replace('/', '-')}": patches[entry.patch]
        for number, entry in enumerate(taken, 1)
    }


def _together(derived: Derived) -> Mapping[str, File | None]:
    changes: dict[str, File | None] = {}
    for outcome in derived.outcomes:
        changes.update(outcome.changes)
    return changes


def _quoted(data: bytes) -> bytes:
    """A mail whose body has no line that begins a new mail."""
    head, mark, diff = data.partition(b"\n---\n")
    return head.replace(b"\nFrom ", b"\n>From ") + mark + diff
