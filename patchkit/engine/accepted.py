"""Places that were accepted by hand (`--accept FILE:LINE`) and that no hunk went to."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.engine.content import text_of
from patchkit.engine.model import Tree
from patchkit.engine.outcome import Outcome
from patchkit.engine.quote import show_path
from patchkit.engine.strip import target_paths
from patchkit.errors import Finding, Where

Place = tuple[str, int]
"""Path and 1-based line."""


def met(
    outcome: Outcome, accept: Iterable[Place], tree: Tree, *, reverse: bool = False
) -> set[Place]:
    """Those of the places that the patch went to; where it was refused, those at which the
    whole pre-image of one of its hunks stands. tree: what it was put on."""
    wanted = set(accept)
    if outcome.state == "applied":
        return wanted & {(place.file, place.line) for place in outcome.places}
    out: set[Place] = set()
    for section in outcome.patch.sections:
        try:
            old, new = target_paths(section, outcome.root)
        except ValueError:
            continue
        path = new if reverse else old
        file = tree.get(path) if path in {file for file, _ in wanted} else None
        if path is None or file is None:
            continue
        text = text_of(file)
        for hunk in section.hunks:
            out |= {(path, at + 1) for at in text.places(hunk.new if reverse else hunk.old)}
    return wanted & out


def unmet(places: Iterable[Place]) -> list[Finding]:
    """A note for each place that was accepted in vain."""
    return [
        Finding(
            "unused",
            f"--accept {show_path(file)}:{line} is not used: no hunk went there",
            Where(file=file, line=line),
            expected="the first line of a place where a hunk may stand",
            found="none begins there, or its hunk stands where it states",
            next=f"leave it out, or correct it: --accept {show_path(file)}:LINE",
            note=True,
        )
        for file, line in sorted(places)
    ]
