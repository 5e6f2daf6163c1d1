"""`patchkit apply FILE… --to DIR` and `apply --series DIR --to DIR`: loose patches, in place."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchkit.cli.out import Out
from patchkit.engine.said import state_shown
from patchkit.errors import Finding, Refused, UsageFault

if TYPE_CHECKING:
    from patchkit.engine.apply import Outcome
    from patchkit.engine.chain import Step
    from patchkit.target.folder import Result


def run_loose(
    files: Sequence[str],
    series: str | None,
    to: str,
    check: bool,
    accept: Sequence[str],
    strip: int | None,
    directory: str | None,
    as_json: bool,
) -> int:
    """Apply to the folder `to`; the exit code is returned."""
    from patchkit.engine.rule import Rule
    from patchkit.target import folder

    out = Out("apply", as_json=as_json)
    steps = steps_of(files, series, strip, directory, out)
    rule = Rule(accept=frozenset(place(a) for a in accept))
    done = folder.apply(to, steps, rule, dry=check)
    if done.ok:
        out.find(in_vain(rule.accept, done.outcomes))
    if series is None:
        done = replace(done, findings=tuple(map(not_in_a_series, done.findings)))
        done = replace(done, outcomes=tuple(map(notes_not_in_a_series, done.outcomes)))
    report(out, done, to, check)
    return out.close()


def in_vain(accept: Collection[tuple[str, int]], outcomes: Sequence[Outcome]) -> list[Finding]:
    """A note for each accepted place that no hunk went to; of patches that were there already
    nothing is known."""
    from patchkit.engine.accepted import unmet

    if not accept or any(outcome.state != "applied" for outcome in outcomes):
        return []
    went = {(place.file, place.line) for outcome in outcomes for place in outcome.places}
    return unmet(set(accept) - went)


ANEW = (
    "make the diff anew against the files that are there (in a series, patchkit refresh does that)"
)


def not_in_a_series(finding: Finding) -> Finding:
    """Of a patch given as a file: as it is in no series, refresh alone cannot be the next step."""
    if not finding.next.startswith("patchkit refresh"):
        return finding
    return replace(finding, next=ANEW)


def notes_not_in_a_series(outcome: Outcome) -> Outcome:
    """The same of what is said besides."""
    return replace(outcome, notes=tuple(map(not_in_a_series, outcome.notes)))


def steps_of(
    files: Sequence[str],
    series: str | None,
    strip: int | None,
    directory: str | None,
    out: Out,
) -> list[Step]:
    """The patches of FILEs or of a quilt folder, in order, with what the command line says."""
    steps = series_steps(series, out) if series is not None else file_steps(files, strip)
    if directory is not None:
        steps = [replace(step, directory=directory) for step in steps]
    return steps


def file_steps(files: Sequence[str], strip: int | None) -> list[Step]:
    """The patches of the files, in order. Raises Refused, UsageFault with all findings."""
    from patchkit.engine.chain import Step
    from patchkit.engine.parse import parse
    from patchkit.files.atomic import given_file
    from patchkit.series.header import parse_header

    steps: list[Step] = []
    wrong: list[Finding] = []
    absent = False
    for name in files:
        try:
            patch = parse(given_file(name), os.path.basename(name))
            steps.append(Step(patch, strip, False, True, parse_header(patch.header).allow()))
        except (Refused, UsageFault) as refusal:
            absent = absent or isinstance(refusal, UsageFault)
            wrong.extend(f if f.where.patch else f.in_patch(name) for f in refusal.findings)
    if wrong:
        # What is not there is a wrong command line, whatever is wrong with the others.
        raise UsageFault(*wrong) if absent else Refused(*wrong)
    return steps


def series_steps(at: str, out: Out) -> list[Step]:
    """The steps of a quilt folder, every guard on."""
    from patchkit.engine.chain import Step
    from patchkit.series.folder import read_series

    if not os.path.isdir(at):
        raise UsageFault.because(f"--series {at}: there is no such folder", next="--series DIR")
    series = read_series(at)
    out.find(f for f in series.findings if f not in sum((p.notes for p in series.patches), ()))
    return [
        Step(patch, entry.strip, entry.reverse, True, header.allow())
        for patch, entry, header in zip(series.patches, series.entries, series.headers, strict=True)
    ]


def place(text: str) -> tuple[str, int]:
    """FILE:LINE of --accept. Raises UsageFault."""
    path, colon, line = text.rpartition(":")
    if not colon or not path or not line.isdecimal() or int(line) < 1:
        raise UsageFault.because(
            f"--accept {text}: not FILE:LINE", next="--accept engine/lanes.py:25"
        )
    return path, int(line)


def report(out: Out, done: Result, to: str, check: bool) -> None:
    """Say what was done, or would be."""
    if done.recovered is not None:
        out.line(done.recovered.words)
    out.find(done.findings)
    for outcome in done.outcomes:
        out.find(outcome.notes)
    rows, patches = [], []
    for outcome in done.outcomes:
        state = state_shown(outcome.state, ok=done.ok, written=done.ok and not check)
        if out.as_json:
            patches.append(patch_json(outcome, state))
        offsets = [f"{p.offset:+d}" for p in outcome.places if p.offset]
        fuzz = max((p.fuzz for p in outcome.places), default=0)
        notes = ([f"offset {', '.join(offsets)}"] if offsets else []) + (
            [f"fuzz {fuzz}"] if fuzz else []
        )
        rows.append((outcome.patch.name, str(len(outcome.changes)), state, "; ".join(notes)))
    out.table("", ("patch", "files", "state", ""), rows, right="files")
    states = {o.state for o in done.outcomes}
    out.put(
        to=os.path.abspath(to),
        changed=list(done.changed),
        patches=patches,
    )
    if not done.ok:
        out.line("nothing was written")
    elif states == {"already-applied"}:
        out.line("already applied, nothing written")
    elif check:
        out.line("nothing was written (--check)")
    else:
        out.line(
            f"{len(done.changed)} file(s) written; take it back with: patchkit revert --to {to}"
        )


def patch_json(outcome: Outcome, state: str) -> dict[str, object]:
    """One patch of the JSON result. state: as the table has it."""
    row: dict[str, object] = {
        "patch": outcome.patch.name,
        "state": state,
        "files": sorted(outcome.changes),
        "places": [
            {"file": p.file, "hunk": p.hunk, "line": p.line, "offset": p.offset, "fuzz": p.fuzz}
            for p in outcome.places
        ],
    }
    row.update(strip=outcome.root.strip, directory=outcome.root.directory)
    return row
