"""`patchkit rebase`: carry a series to another release; planned first, conflicts kept and named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin
from patchkit.errors import Refused, UsageFault
from patchkit.series.naming import named

if TYPE_CHECKING:
    from patchkit.authoring.session import Session
    from patchkit.cli.out import Out
    from patchkit.rebase.footing import Footing
    from patchkit.rebase.plan import Row
    from patchkit.rebase.state import State
    from patchkit.rebase.waiting import Waits

EXAMPLES = (
    "Examples:  patchkit rebase --pin v0.30.0 --onto v0.33.0 --plan    "
    "patchkit rebase --pin v0.30.0 --onto v0.33.0    patchkit rebase --continue"
)


def run(
    context: typer.Context,
    action: Annotated[
        str | None, typer.Argument(metavar="[status]", help="status: say where a rebase stands.")
    ] = None,
    pin: Pin = None,
    onto: Annotated[
        str | None,
        typer.Option(
            "--onto",
            metavar="PIN",
            help="The release, or a commit, tag or branch of the git server.",
        ),
    ] = None,
    pin_it: bool = typer.Option(
        False, "--add-pin", help="Write the pin that --onto COMMIT makes to pins.toml."
    ),
    plan: bool = typer.Option(False, "--plan", help="Only say what would become of each patch."),
    direct: bool = typer.Option(False, "--direct", help="Do not look at the releases between."),
    only_new: bool = typer.Option(
        False, "--new", help="The release has a series: carry into it what that lacks."
    ),
    again: Annotated[
        list[str] | None,
        typer.Option(
            "--again",
            metavar="PATCH",
            help="The release has it, and it was edited since: carry it once more; several times.",
        ),
    ] = None,
    prove: bool = typer.Option(False, "--prove", help="Run the proofs on the release, too."),
    python: Annotated[
        str | None, typer.Option("--python", metavar="EXE", help="Interpreter for --prove.")
    ] = None,
    go_on: bool = typer.Option(False, "--continue", help="Take the conflict as settled; go on."),
    skip: Annotated[
        str | None, typer.Option("--skip", metavar="PATCH", help="Leave a patch out for now.")
    ] = None,
    drop: Annotated[
        str | None, typer.Option("--drop", metavar="PATCH", help="Leave a patch out for good.")
    ] = None,
    why: Annotated[
        str | None, typer.Option("--why", metavar="TEXT", help="Reason of --skip or --drop.")
    ] = None,
    abort: bool = typer.Option(False, "--abort", help="Forget the rebase; nothing was written."),
    date: Annotated[
        str | None, typer.Option("--date", metavar="DAY", help="What Last-Update becomes.")
    ] = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Merge every patch three-way onto another release and write the new pin's series and lock."""
    from patchkit.authoring.session import session
    from patchkit.authoring.when import when
    from patchkit.cli.offered import not_pinned, offer
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.rebase_asked import (
        begun_with,
        goes_on,
        none_under_way,
        onto_needed,
        under_way,
    )
    from patchkit.cli.rebase_said import status
    from patchkit.rebase import reasons
    from patchkit.rebase import state as states
    from patchkit.rebase.footing import footing, require_room
    from patchkit.rebase.onto import widened, write_pin
    from patchkit.rebase.state import State

    if action not in (None, "status"):
        raise UsageFault.because(f"{action}: not status", next="patchkit rebase status")
    out = Out("rebase", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, offline=offline, progress=bar) as held,
    ):
        project = held.project
        if abort:
            there = os.path.lexists(states.path_of(project))
            _forget(held, None)
            done = "the rebase is forgotten; series/ is as it was"
            out.line(done if there else "no rebase is under way")
            raise typer.Exit(out.close())
        known = states.load(project)
        if action == "status":
            raise typer.Exit(status(out, known))
        if known is None:
            if go_on or (onto is None and (skip is not None or drop is not None)):
                raise Refused(none_under_way())
            if onto is None:
                raise onto_needed(project, held.pin(pin))
            old = held.pin(pin)
            target = widened(held.bases, old, [onto])[0]
            held.project = held.bases.project
            offer(out, [target])
            names = held.project.series(old.name).file.names() if again else []
            once_more = tuple(dict.fromkeys(named(names, name, old.name) for name in again or ()))
            known = State(
                old.name,
                target.pin.name,
                when(date).day,
                direct,
                into=only_new or bool(again),
                again=once_more,
                new=only_new,
            )
            if known.pin == known.onto:
                raise UsageFault.because("--pin and --onto are the same release")
            lacks = [] if plan and not known.into else require_room(held.bases, known)
            if known.into and not lacks:
                out.line(f"{known.onto} has every patch of {known.pin}, or says why not")
                raise typer.Exit(out.close())
            if target.offered and pin_it and not plan:
                held.bases.get(target.pin)  # nothing is pinned that cannot be had
                write_pin(held.project, target.pin)
            if target.offered and not pin_it and not plan:
                plan = True
                out.find([not_pinned(target.pin)])
        else:
            begins: dict[str, object] = {"--direct": direct, "--new": only_new}
            if again:
                names = held.project.series(known.pin).file.names()
                begins["--again"] = {named(names, name, known.pin) for name in again}
            begun_with(known, begins)
            told = go_on or skip is not None or drop is not None or plan
            if (known.stopped and not told) or not goes_on(held, known, pin, onto, date):
                raise Refused(under_way(known))
        if why is not None and skip is None and drop is None:
            raise UsageFault.because("--why is of --skip or --drop", next="--drop PATCH --why TEXT")
        ground = footing(held.bases, known)
        for name, for_now in ((skip, True), (drop, False)):
            if name is not None:
                patch = named([step.name for step in ground.steps], name, known.pin)
                reason = reasons.of(held.bases, known, patch, why)
                known = known.without(patch, reasons.left_out(reason, for_now))
        code = _advance(out, held, ground, known, plan, prove, python, go_on)
    raise typer.Exit(code)


def _advance(
    out: Out,
    held: Session,
    ground: Footing,
    state: State,
    only_plan: bool,
    prove: bool,
    python: str | None,
    go_on: bool,
) -> int:
    from patchkit.authoring.sealing import write_files
    from patchkit.cli.rebase_said import conflicts, patches, table
    from patchkit.engine.model import File
    from patchkit.prove import environment
    from patchkit.rebase import conflict, proving, resolutions, waiting
    from patchkit.rebase import state as states
    from patchkit.rebase.finish import finish
    from patchkit.rebase.prover import prover_for
    from patchkit.rebase.reasons import every

    project, store = held.project, ground.store
    out.find(ground.notes)
    if ground.passed:
        out.line(
            f"not looked at on the way: {', '.join(ground.passed)} (whether a commit comes after a "
            "release only its history says; rebase onto each in turn to see what it took)"
        )
    rows = ground.planned(state)
    new_files: dict[str, File] = {}
    if state.stopped and state.stopped not in ground.headers:
        out.line(f"{state.stopped} is not among the patches any more: its conflict is gone")
    elif go_on and state.stopped and not os.path.isdir(state.at):
        out.line(f"{os.path.relpath(state.at)} is gone: it is laid out anew")
    elif go_on and state.stopped and not only_plan:
        versions = conflict.versions_of(store, ground.steps, ground.old, rows[-1], state.stopped)
        waiting.require_same(state, waiting.basis(store, rows[-1], versions))
        settled = conflict.read_back(store, rows[-1], versions, state.stopped, state.at)
        name = resolutions.key(versions.three())
        new_files.update(
            resolutions.file_of(
                name, state.stopped, state.onto, settled, versions.now, versions.text
            )
        )
        state = state.settled(state.stopped, settled)
        rows = ground.planned(state)
    if prove:
        made = environment.given(python) if python else environment.ready(store.root)
        rows = [prover_for(project, store, made, row, ground.proofs) for row in rows]
    else:
        digest = environment.digest_of_list()
        rows = [proving.recorded(store, row, ground.proofs, digest) for row in rows]
    table(out, state, rows)
    last = rows[-1]
    if only_plan:
        conflicts(out, state, last)
        out.line("nothing was written")
        return out.close(1 if conflict.first_conflict(last) is not None else None)
    waits = waiting.first(store, ground.steps, ground.old, last, state)
    # A result that is refused leaves the conflict open that it came of.
    ready = finish(project, ground, state, last, every(state, rows)) if waits is None else None
    if new_files:
        write_files(project, new_files, "rebase")
    # From here on a run that is killed is one that goes on: with the same day, and all settled.
    states.save(project, state)
    if ready is not None:
        out.find(ready.findings)
        done = write_files(project, ready.files, f"rebase onto {state.onto}")
        _forget(held, state)
        out.put(written=done, tree=ready.tree)
        out.line(f"series/{state.onto}: {patches(len(ready.series.entries))}; tree {ready.tree}")
        if state.into and not done:
            out.line("nothing was written: every byte is as it should be")
        out.line(f"next: patchkit check --pin {state.onto}, patchkit prove --pin {state.onto}")
        return out.close()
    assert waits is not None
    return _stop(out, held, ground, state, last, waits)


def _stop(out: Out, held: Session, ground: Footing, state: State, last: Row, waits: Waits) -> int:
    from dataclasses import replace

    from patchkit.cli.rebase_asked import in_the_way
    from patchkit.cli.rebase_said import conflicts, remembers
    from patchkit.files.growing import remove_folder
    from patchkit.rebase import conflict, resolutions
    from patchkit.rebase import state as states

    project, store, patch, versions = held.project, ground.store, waits.patch, waits.versions
    at = states.tree_of(project, state.pin, state.onto)
    shown = os.path.relpath(at)
    conflicts(out, state, last, shown)
    if waits.stands:
        out.put(stopped=patch, work_tree=at, open=list(waits.open))
        out.line(f"{patch} waits in {shown}, as it was")
    else:
        known = resolutions.find(project, resolutions.key(versions.three()), versions.now)
        if not state.at and os.path.lexists(at):
            raise Refused(in_the_way(at))
        states.save(project, replace(state, stopped="", at=at))
        remove_folder(at)
        laid = conflict.lay_out(store, last, versions, ground.headers, patch, at, known)
        states.save(project, replace(state, stopped=patch, at=at, on=waits.on, laid=laid.tree))
        out.put(stopped=patch, work_tree=at, open=list(laid.open))
        if known is not None:
            remembers(out, known, versions.now, shown)
        elif any(s.name == patch and s.instead is not None for s in ground.steps):
            out.line(f"how it stands there so far: patchkit show {patch} --pin {state.onto}")
        out.line(f"{patch} waits in {shown}: " + ", ".join(laid.open))
    out.line(
        f"next: edit there, then patchkit rebase --continue (or --skip/--drop {patch}, --abort)"
    )
    return out.close(1)


def _forget(held: Session, state: State | None) -> None:
    """End the rebase: its state goes, and the work tree of its last conflict."""
    from patchkit.files.growing import remove_folder
    from patchkit.rebase import state as states

    if state is None:
        try:
            state = states.load(held.project)
        except Refused:
            state = None  # --abort is the way out of a state that cannot be read
    # The state goes last: a run that is killed before is found by it.
    if state is not None and state.at:
        remove_folder(state.at)
    states.forget(held.project)
