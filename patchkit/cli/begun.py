"""What `new` and `edit` say when the work tree is ready."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchkit.authoring.edit import Begun
    from patchkit.cli.out import Out


def report(out: Out, begun: Begun, *, new: bool, default: bool) -> None:
    """Where the tree is, what it holds, and what to type next."""
    out.find(begun.findings)
    if begun.written.recovered is not None:
        out.line(f"an interrupted {begun.written.recovered.what} was undone first")
    near = os.path.relpath(begun.at)
    shown = begun.at if near.startswith("..") else near
    words = {"new": "new work tree", "updated": "brought up to date", "unchanged": "as it was"}
    holds = f"{begun.count} patch(es), the last is {begun.last}" if begun.count else "no patch yet"
    out.line(f"{shown}: {words[begun.written.kind]}, {holds}")
    if new:
        out.line(f"{begun.patch} comes into the series with patchkit refresh")
    tree = "" if default else f" --tree {shown}"
    add = f"git -C {shown} add new ones" if new else "git add new ones"
    out.line(f"next: edit files there ({add}), test, then: patchkit refresh{tree}")
    out.put(
        patch=begun.patch,
        to=begun.at,
        patches=begun.count,
        last=begun.last,
        new=new,
        written=begun.written.kind,
    )
