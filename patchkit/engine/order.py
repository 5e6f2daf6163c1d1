"""What the patches of a series have to do with each other: duplicates, wrong order, how far a
tree is patched already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from patchkit.engine.apply import put
from patchkit.engine.history import History
from patchkit.engine.model import Hunk, Patch
from patchkit.engine.outcome import Edit, Outcome, There
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Allow, Rule
from patchkit.engine.strip import Root, find_root
from patchkit.engine.work import Work
from patchkit.errors import Finding, Where

TRIALS, ALL_TRIALS = 32, 400
"""How many later patches are tried as the one that should have come first: for one patch that
fails, and in all."""

Did = tuple[str, bytes, tuple[bytes, ...]]
Hunks = Mapping[Did, int]
"""What a hunk did -> the first patch that did it."""


class Entry(Protocol):
    """What is asked of a step of a series."""

    @property
    def patch(self) -> Patch: ...
    @property
    def strip(self) -> int | None: ...
    @property
    def directory(self) -> str | None: ...
    @property
    def reverse(self) -> bool: ...
    @property
    def selected(self) -> bool: ...
    @property
    def allow(self) -> Allow: ...


def did(edit: Edit, hunk: Hunk) -> Did:
    """What a hunk did, wherever it stood: the path and its lines."""
    return edit.new or edit.old or "", hunk.tags, hunk.contents


def duplicates(outcome: Outcome, history: History, hunks: Hunks, names: Sequence[str]) -> Outcome:
    """The outcome, refused where a hunk repeats what an earlier patch of the series did.

    Either it is there already because that patch made it, or (a pure insertion) it holds a
    second time beside the first.
    """
    found: list[tuple[There, int]] = []
    if outcome.state == "applied":
        for edit in outcome.edits:
            if edit.old is None:
                continue
            for number, hunk in enumerate(edit.hunks, 1):
                earlier = hunks.get(did(edit, hunk))
                if earlier is None:
                    continue
                start = edit.starts[number - 1]
                part = There(edit.old, number, start + 1, len(hunk.old))
                # An inserted line may stand just outside the context that matches again.
                if history.changed(edit.old, max(start - 1, 0), start + part.lines + 1) == earlier:
                    found.append((part, earlier))
    else:
        for part in outcome.there:
            stop = part.line - 1 + max(part.lines, 1)
            by = history.changed(part.file, part.line - 1, stop)
            if by is not None:
                found.append((part, by))
    if not found:
        return outcome
    findings = tuple(_duplicate(outcome.patch, part, names[by]) for part, by in found[:20])
    rest = outcome.findings
    if len(found) == len(outcome.there):
        rest = tuple(f for f in rest if f.name not in ("partly-applied", "upstreamed"))
    return replace(
        outcome, state="refused", changes={}, findings=(*findings, *rest), places=(), edits=()
    )


def _duplicate(patch: Patch, part: There, earlier: str) -> Finding:
    what = f"hunk {part.hunk}" if part.hunk else "all"
    return Finding(
        "duplicate",
        f"{what} of {show_path(part.file)} is in {show_path(earlier)} already",
        Where(patch.name, part.file, part.hunk or None, part.line),
        expected="each change in one patch",
        found=f"the same change in {show_path(earlier)}",
        next=f"patchkit refresh {show_path(patch.name)}",
    )


def wrong_order(start: Work, steps: Sequence[Entry], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, with patches that hold after a later one said to stand too early.

    start: the tree before the series.
    """
    out = list(outcomes)
    left = ALL_TRIALS
    for number, outcome in enumerate(outcomes):
        if outcome.state != "refused" or outcome.there or _said(outcome):
            continue
        paths = {finding.where.file for finding in outcome.findings}
        work = start.again()
        for before in outcomes[:number]:
            work.take(before.changes)
        budget = min(TRIALS, left)
        for n in range(number + 1, len(steps)):
            changes = outcomes[n].changes
            work.take(changes)
            if paths.isdisjoint(changes):
                continue
            if not budget:
                break
            budget -= 1
            left -= 1
            if _put(work, steps[number]).state == "applied":
                out[number] = replace(outcome, findings=_too_early(outcome, steps[n].patch.name))
                break
    return out


def _said(outcome: Outcome) -> bool:
    """Whether it is known already why the patch fails where it stands."""
    return any(finding.name == "guard-cuts" for finding in outcome.findings)


def _put(work: Work, step: Entry, reverse: bool = False) -> Outcome:
    """Whether a patch holds, loosely: a trial whose result is thrown away."""
    if step.strip is None:
        root = find_root(work, step.patch, directory=step.directory)
    else:
        root = Root(step.strip, step.directory or "")
    loose = Rule(allow=step.allow)
    return put(work, step.patch, loose, root, reverse=step.reverse != reverse, trial=True)


def _too_early(outcome: Outcome, needs: str) -> tuple[Finding, ...]:
    first = outcome.findings[0]
    name = show_path(outcome.patch.name)
    details = [detail for f in outcome.findings for detail in (f.message, *f.details)]
    return (
        Finding(
            "wrong-order",
            f"{name} does not hold where it stands in the series, and holds after "
            f"{show_path(needs)}, which comes later",
            first.where,
            expected=f"{show_path(needs)} before {name}",
            found=f"{name} first",
            details=tuple(details[:12]),
            next=f"patchkit move {name} --after {show_path(needs)}",
        ),
    )


def patched_up_to(start: Work, steps: Sequence[Entry]) -> int:
    """How many first steps of the series are in the tree of `start` already, all of them in full.

    Shown by taking them out again, the last one first; 0 where none is, or where it cannot be
    told.
    """
    if any(step.reverse for step in steps):
        return 0
    budget = 4 * len(steps) + 100
    for count in range(len(steps), 0, -1):
        if budget < 0:
            break
        if all(section.kind == "delete" for section in steps[count - 1].patch.sections):
            continue  # that a file is absent proves nothing: it may be a wrong path
        work = start.again()
        for step in reversed(steps[:count]):
            if not step.selected:
                continue
            undone = _put(work, step, reverse=True)
            budget -= 1
            if undone.state != "applied":
                break
            work.take(undone.changes)
        else:
            return count
    return 0
