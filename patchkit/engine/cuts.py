"""Selections that leave out what a selected patch stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchkit.engine.history import History
from patchkit.engine.outcome import Outcome
from patchkit.engine.quote import show_path
from patchkit.errors import Finding


def guard_cuts(
    outcomes: Sequence[Outcome], whole: Sequence[Outcome], selected: Sequence[bool]
) -> list[Outcome]:
    """The outcomes, with patches that hold in the whole series and not in this selection said to
    be cut off. whole: the outcomes with every patch selected.
    """
    out = list(outcomes)
    history = History()
    for number, outcome in enumerate(whole):
        if outcomes[number].state == "refused" and outcome.state == "applied":
            needs = _needs(outcome, history, selected)
            if needs:
                names = [whole[n].patch.name for n in needs]
                out[number] = replace(outcomes[number], findings=_cut(outcomes[number], names))
        history.record(number, outcome.edits)
    return out


def _needs(outcome: Outcome, history: History, selected: Sequence[bool]) -> list[int]:
    """The left-out patches that last changed the lines, or made the files, of a patch."""
    exact: dict[int, None] = {}
    touched: dict[int, None] = {}
    for edit in outcome.edits:
        path = edit.old or edit.new
        if path is None:
            continue
        for hunk, start in zip(edit.hunks, edit.starts, strict=True):
            by = history.changed(path, start, start + len(hunk.old))
            if by is not None and not selected[by]:
                exact[by] = None
        touched.update(dict.fromkeys(n for n in history.touched(path) if not selected[n]))
    return list(exact or touched)


def _cut(outcome: Outcome, names: Sequence[str]) -> tuple[Finding, ...]:
    shown = ", ".join(show_path(name) for name in names[:5])
    name = show_path(outcome.patch.name)
    first = outcome.findings[0]
    details = [detail for f in outcome.findings for detail in (f.message, *f.details)]
    return (
        Finding(
            "guard-cuts",
            f"{name} holds in the whole series and not in this selection, which leaves out {shown}",
            first.where,
            expected=f"{name} and {shown} selected together",
            found=f"{name} alone",
            details=tuple(details[:12]),
            next=f"give {name} the guard of {shown} in the series file",
        ),
    )
