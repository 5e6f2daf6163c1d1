"""Whether what `patchkit rebase` is asked for can be done now, and what it says where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchkit.errors import Finding, UsageFault, Where

if TYPE_CHECKING:
    from patchkit.authoring.session import Session
    from patchkit.derive.project import Project
    from patchkit.rebase.state import State
    from patchkit.series.pins import Pin


def onto_needed(project: Project, pin: Pin) -> UsageFault:
    """No release is named: the pins of this project that could be, the ones without a series
    first."""
    from patchkit.rebase.releases import wanted

    try:
        later = [p.name for p in wanted(project, pin, [], every=False)]
    except UsageFault as fault:
        (none,) = fault.findings
        return UsageFault.because(f"--onto is needed, and {none.message}", next=none.next)
    free = [name for name in later if not project.has_series(name)]
    return UsageFault.because(
        f"--onto is needed: the release ({', '.join(later)})",
        next=f"patchkit rebase --pin {pin.name} --onto {(free or later)[0]} --plan",
    )


def goes_on(
    held: Session, state: State, pin: str | None, onto: str | None, date: str | None
) -> bool:
    """Whether a command line means the rebase that is under way. Raises UsageFault."""
    from patchkit.authoring.when import when
    from patchkit.rebase.onto import widened

    if date is not None and when(date).day != state.day:
        raise UsageFault.because(f"--date {date}: the rebase under way was begun with {state.day}")
    if pin not in (None, state.pin):
        return False
    if onto in (None, state.onto):
        return True
    return widened(held.bases, held.project.pins.pin(state.pin), [onto])[0].pin.name == state.onto


def begun_with(state: State, given: dict[str, object]) -> None:
    """Raises UsageFault where a command line that goes on says what a rebase is begun with, and
    this one was not. given: option -> what it says, as the state has it."""
    there: dict[str, object] = {
        "--direct": state.direct,
        "--new": state.new or (state.into and not state.again),
        "--again": {*state.again},
    }
    for option, value in given.items():
        if value and value != there[option]:
            raise UsageFault.because(
                f"{option}: the rebase under way was begun without",
                next="patchkit rebase status; patchkit rebase --abort to begin anew",
            )


def in_the_way(at: str) -> Finding:
    """Somebody's folder stands where the conflict would be laid out."""
    return Finding(
        "target-exists",
        "the place for the conflict's work tree is taken",
        Where(file=at),
        expected="no such folder",
        found="one that this rebase did not make",
        next=f"move it away: {at}",
    )


def none_under_way() -> Finding:
    """There is nothing that could go on."""
    return Finding(
        "no-op",
        "no rebase is under way",
        expected="a rebase that stopped at a conflict",
        found="none",
        next="patchkit rebase --pin OLD --onto NEW",
    )


def under_way(state: State) -> Finding:
    """Another rebase waits, or this one for a person."""
    return Finding(
        "journal",
        f"a rebase of {state.pin} onto {state.onto} is under way",
        expected="--continue, --skip PATCH, --drop PATCH or --abort",
        found=f"{state.stopped or 'no patch'} waits",
        next="patchkit rebase status",
    )
