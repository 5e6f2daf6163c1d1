"""Whether a tree that a patch does not hold on has it already."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.engine.actions import resolve
from patchkit.engine.model import Patch
from patchkit.engine.obstacles import Setting
from patchkit.engine.outcome import Outcome, There
from patchkit.engine.perform import Result, perform_all, stated_starts
from patchkit.engine.place import THERE
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Rule
from patchkit.engine.strip import Root
from patchkit.engine.work import Work
from patchkit.errors import Finding, Where

SHOWN = 4
"""Hunks at an offset that a message names."""


def there_already(
    work: Work,
    patch: Patch,
    root: Root,
    rule: Rule,
    results: Sequence[Result],
    notes: tuple[Finding, ...],
) -> Outcome | None:
    """An outcome where the tree is what the patch makes; None where it is not.

    Shown by taking the patch out, or by every hunk's result being found. That a file to delete
    is absent proves nothing by itself: it may be a wrong path.
    """
    if all(r.action.kind == "delete" for r in results):
        return None
    taken_out = Setting(patch.name, Rule(), stated_starts, detect=False, modes=True)
    actions, _ = resolve(patch, root, True)
    undone, _ = perform_all(work, actions, taken_out)
    if all(result.held for result in undone):
        there = tuple(t for result in reversed(undone) for t in _undone(result))
        return already(patch, root, notes, rule, there)
    if all(r.there for r in results):
        there = tuple(t for r in results for t in parts_there(r))
        return already(patch, root, notes, rule, there)
    return None


def already(
    patch: Patch, root: Root, notes: tuple[Finding, ...], rule: Rule, there: tuple[There, ...]
) -> Outcome:
    moved = [t for t in there if t.offset]
    where = Where(patch=patch.name)
    found = "; ".join(
        f"{show_path(t.file)} hunk {t.hunk} at line {t.line} (offset {t.offset})"
        for t in moved[:SHOWN]
    )
    if rule.pin_base:
        finding = Finding(
            "upstreamed",
            "every part of the patch is in this release already: upstream has taken it",
            where,
            expected="a tree without it",
            found=found or "all of it, at its own lines",
            next=f"patchkit drop {show_path(patch.name)}",
        )
        return Outcome(patch, "refused", findings=(finding,), notes=notes, root=root, there=there)
    note = Finding(
        "already-applied",
        "every part of the patch is in the tree already; nothing to do"
        + (f": {found}" if found else ""),
        where,
        note=True,
    )
    return Outcome(patch, "already-applied", notes=(*notes, note), root=root, there=there)


def parts_there(result: Result) -> list[There]:
    """The parts of a result that are in the tree already."""
    path = result.action.path
    if result.there == "there" and not result.spots:
        return [There(path, 0, 1, sum(len(hunk.new) for hunk in result.action.hunks))]
    return [
        There(path, i, spot.index + 1, len(hunk.new), spot.offset)
        for i, (hunk, spot) in enumerate(zip(result.hunks, result.spots, strict=False), 1)
        if spot.status == THERE
    ]


def _undone(result: Result) -> list[There]:
    """The parts that taking a patch out has found."""
    if not result.hunks:
        return [There(result.action.path, 0, 1, 0)]
    return [
        There(p.file, p.hunk, p.line, len(hunk.old), p.offset)
        for hunk, p in zip(result.hunks, result.places, strict=False)
    ]
