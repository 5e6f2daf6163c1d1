"""What a rebase stands on: both releases, the series that moves, and the one that is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.authoring.standing import Standing, open_standing, unsealed
from patchkit.derive.base import Base, Bases
from patchkit.derive.derive import Derived
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.prove.proofs import Proof, proofs_of
from patchkit.rebase.plan import Row, plan
from patchkit.rebase.releases import between, passed_over
from patchkit.rebase.state import State
from patchkit.rebase.steps import Step, lacking, left_behind, steps_into, steps_of
from patchkit.series.header import Header
from patchkit.series.quilt import SeriesFile
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Footing:
    """derived: the series that moves, on `old`. releases: those to look at, the last is the one
    that is meant. passed: later pins that are not looked at. steps: what is to stand there. own:
    the series file that it has, where what it lacks is carried into it. proofs: by patch. notes: on
    either series."""

    store: Store
    old: Base
    derived: Derived
    releases: tuple[tuple[str, Base], ...]
    passed: tuple[str, ...]
    steps: tuple[Step, ...]
    own: SeriesFile | None
    proofs: Mapping[str, Proof]
    notes: tuple[Finding, ...] = ()

    def planned(self, state: State) -> list[Row]:
        """What becomes of each patch."""
        return plan(
            self.store,
            self.derived,
            self.old,
            self.releases,
            resolved=state.resolved,
            left=state.left,
            steps=self.steps,
        )

    @property
    def headers(self) -> dict[str, Header]:
        """The header of every patch."""
        return {step.name: step.header for step in self.steps}


def footing(bases: Bases, state: State) -> Footing:
    """What the rebase of `state` stands on.

    Raises Refused where a series does not hold or was edited by hand since it was locked: what
    nobody has looked at is not carried.
    """
    project, store = bases.project, bases.store
    old_pin, new_pin = project.pins.pin(state.pin), project.pins.pin(state.onto)
    old = open_standing(project, old_pin, bases)
    notes = [*_sound(old)]
    proofs = proofs_of(project, old_pin.name, old.series)
    pins = [new_pin] if state.direct else between(project, old_pin, new_pin)
    releases = tuple((pin.name, bases.get(pin)) for pin in pins)
    passed = () if state.direct else tuple(passed_over(project, old_pin, new_pin))
    steps = steps_of(old.derived, old.tree)
    own = None
    if state.into:
        there = open_standing(project, new_pin, bases)
        notes += _sound(there)
        new = state.new or not state.again
        steps = steps_into(
            project, old.derived, old.tree, there.derived, there.tree, state.again, new
        )
        proofs |= proofs_of(project, new_pin.name, there.series)
        own = there.series.file
    return Footing(
        store, old.base, old.derived, releases, passed, tuple(steps), own, proofs, tuple(notes)
    )


def require_room(bases: Bases, state: State) -> list[str]:
    """The patches that the release lacks or is to get again, where it has a series and those are
    asked for.

    Raises Refused(target-exists) where it has a series and they are not, UsageFault where it has
    none and they are, or says why it has not one of those it is to get again.
    """
    project = bases.project
    command = f"patchkit rebase --pin {state.pin} --onto {state.onto}"
    if not project.has_series(state.onto):
        if state.into:
            option = "--again" if state.again else "--new"
            raise UsageFault.because(f"{option}: {state.onto} has no series yet", next=command)
        return []
    old, own = project.series(state.pin), project.series(state.onto)
    names = lacking(project, old, own)
    told = left_behind(project, old, own)
    for name in state.again:
        if name in told:
            raise UsageFault.because(
                f"--again: {name} is not on {state.onto}: {told[name]}",
                next=f"remove that line from {os.path.join('series', state.onto, 'series')}, if "
                "it is wanted there",
            )
    if state.into:
        return [*state.again, *(names if state.new or not state.again else [])]
    raise Refused(
        Finding(
            "target-exists",
            f"{state.onto} has a series already",
            Where(file=os.path.join("series", state.onto, "series")),
            expected="no series there",
            found=f"one, which lacks {', '.join(names)}"
            if names
            else f"one, which has every patch of {state.pin} or says why not",
            next=f"{command} --new, to carry those" if names else f"{command} --plan, to compare",
        )
    )


def _sound(standing: Standing) -> list[Finding]:
    found = [*standing.derived.findings, *unsealed(standing)]
    wrong = [finding for finding in found if not finding.note]
    if wrong:
        raise Refused(*wrong)
    return found
