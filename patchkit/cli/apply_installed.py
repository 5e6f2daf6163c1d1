"""`patchkit apply … --installed`: a pin's series, or loose patches, in site-packages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from patchkit.cli.out import Out
from patchkit.engine.said import state_shown

if TYPE_CHECKING:
    from patchkit.target.installed import Done
    from patchkit.target.installed_plan import Plan
    from patchkit.target.installed_words import Words


@dataclass(frozen=True)
class Asked:
    """The command line of an installed target. every: the whole series. check: write nothing.
    what: the words of the command line that name loose patches."""

    start: str
    python: str | None = None
    site: str | None = None
    pins: tuple[str, ...] = ()
    stack: str | None = None
    every: bool = False
    upto: str | None = None
    exclude: tuple[str, ...] = ()
    check: bool = False
    as_json: bool = False
    what: tuple[str, ...] = ()

    def sites(self) -> tuple[str, ...]:
        """The folders of packages that are meant."""
        from patchkit.errors import UsageFault
        from patchkit.target.installed_sites import (
            default_python,
            sites_of_folder,
            sites_of_python,
        )

        if self.python is not None and self.site is not None:
            raise UsageFault.because("--python and --site exclude each other")
        if self.site is not None:
            return sites_of_folder(self.site)
        return sites_of_python(self.python or default_python(os.environ))

    def words(self) -> Words:
        """The commands that messages name."""
        from shlex import join

        from patchkit.target.installed_words import Words

        own = ["patchkit", *(("-C", self.start) if self.start != "." else ())]
        options = (("--python", self.python), ("--site", self.site))
        where = ["--installed", *(w for name, v in options if v is not None for w in (name, v))]
        what = [word for pin in self.pins for word in ("--pin", pin)]
        if not self.what:
            what += ["--stack", self.stack] if self.stack else ["--all"] if self.every else []
            what += ["--upto", self.upto] if self.upto else []
        excluded = [word for pattern in self.exclude for word in ("--exclude", pattern)]
        return Words(
            join([*own, "apply", *self.what, *what, *where, *excluded]),
            join([*own, "check", *where]),
            join([*own, "revert", *where]),
        )


def run_pins(asked: Asked) -> int:
    """Apply the series of one or several pins; the exit code is returned."""
    from patchkit.check.installed import choose_pins, packet
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.target.installed import apply_pins

    out = Out("apply", as_json=asked.as_json)
    project = find(asked.start)
    sites = asked.sites()
    stack = None if asked.every else project.stack(asked.stack or "default")
    pins = choose_pins(project, asked.pins, sites)
    packets = [packet(project, p, Selection(stack, asked.upto), asked.exclude) for p in pins]
    named = replace(asked, pins=tuple(pin.name for pin in pins))
    done = apply_pins(sites, packets, named.words(), dry=asked.check)
    titles = [p.title for p in packets]
    report(out, done, named, titles)
    return out.close()


def run_files(
    asked: Asked,
    files: Sequence[str],
    series: str | None,
    accept: Sequence[str],
    strip: int | None,
    directory: str | None,
) -> int:
    """Apply loose patches; the exit code is returned."""
    from patchkit.cli.apply_loose import (
        in_vain,
        not_in_a_series,
        notes_not_in_a_series,
        place,
        steps_of,
    )
    from patchkit.engine.rule import Rule
    from patchkit.target.installed import apply_loose

    out = Out("apply", as_json=asked.as_json)
    what = ["--series", series] if series is not None else [*files]
    what += [word for at in accept for word in ("--accept", at)]
    what += ["-p", str(strip)] if strip is not None else []
    what += ["--directory", directory] if directory is not None else []
    asked = replace(asked, what=tuple(what))
    steps = steps_of(files, series, strip, directory, out)
    rule = Rule(accept=frozenset(place(a) for a in accept))
    done = apply_loose(
        asked.sites(),
        steps,
        rule,
        asked.words(),
        exclude=asked.exclude,
        dry=asked.check,
    )
    if done.ok and done.plans:
        out.find(in_vain(rule.accept, done.plans[0].outcomes))
    if series is None:
        plans = [
            replace(plan, outcomes=tuple(map(notes_not_in_a_series, plan.outcomes)))
            for plan in done.plans
        ]
        findings = tuple(map(not_in_a_series, done.findings))
        done = replace(done, findings=findings, plans=tuple(plans))
    report(out, done, asked, [])
    return out.close()


def run_revert(asked: Asked, *, discard: bool = False) -> int:
    """Take back whatever is patched there; the exit code is returned."""
    from patchkit.check.installed import known_packets
    from patchkit.target.installed import revert
    from patchkit.target.installed_said import taken_back

    out = Out("revert", as_json=asked.as_json)
    sites = asked.sites()
    done = revert(
        sites,
        (),
        asked.words(),
        dry=asked.check,
        discard=discard,
        packets=lambda: known_packets(asked.start, sites),
    )
    recovered(out, done)
    out.find(done.findings)
    out.put(
        site=done.site,
        changed=list(done.changed),
        bytecode=list(done.bytecode),
        packages=[_package(plan) for plan in done.plans],
    )
    for line in taken_back(done, asked.check) if done.ok else ("nothing was written",):
        out.line(line)
    return out.close()


def report(out: Out, done: Done, asked: Asked, titles: Sequence[str]) -> None:
    """Say what was done to each package, or would be. titles: one a packet; none for loose
    patches, whose table is one for all packages."""
    from patchkit.target.installed_cut import left_out_notes
    from patchkit.target.installed_hints import caches_of, cuda_note
    from patchkit.target.installed_said import clear_caches

    recovered(out, done)
    out.find(done.findings)
    left = sorted({path for plan in done.plans for path in plan.left_out})
    out.find(left_out_notes(left, asked.exclude))
    shown = done.plans if titles else done.plans[:1]
    patches: list[dict[str, Any]] = []
    for number, plan in enumerate(shown):
        for outcome in plan.outcomes:
            out.find(outcome.notes)
        states = [
            state_shown(o.state, ok=done.ok, written=done.ok and not asked.check)
            for o in plan.outcomes
        ]
        _table(out, plan, titles[number] if titles else "", states)
        patches += [_patch(o, plan, s) for o, s in zip(plan.outcomes, states, strict=True)]
    caches = [cache for plan in done.plans for cache in caches_of(plan)] if done.ok else []
    if done.ok:
        notes = [cuda_note(plan.dist) for plan in done.plans]
        out.find(note for note in notes if note is not None)
    out.put(
        site=done.site,
        changed=list(done.changed),
        bytecode=list(done.bytecode),
        left_out=left,
        patches=patches,
        packages=[_package(plan) for plan in done.plans],
        caches=[{"name": c.name, "clear": c.clear, "files": list(c.files)} for c in caches],
    )
    _last(out, done, asked)
    for line in clear_caches(caches):
        out.line(line)


def recovered(out: Out, done: Done) -> None:
    """Say that an interrupted command was undone."""
    if done.recovered is not None:
        out.line(done.recovered.words)
        out.put(recovered=list(done.recovered.paths))


def _last(out: Out, done: Done, asked: Asked) -> None:
    if not done.ok:
        out.line("nothing was written")
    elif asked.check:
        out.line(f"{len(done.changed)} file(s) would be written in {done.site} (--check)")
    elif not done.written:
        out.line(f"already applied in {done.site}, nothing written")
    else:
        gone = f", {len(done.bytecode)} bytecode file(s) removed" if done.bytecode else ""
        out.line(f"{len(done.changed)} file(s) written in {done.site}{gone}")
        out.line(f"take it back with: {asked.words().revert}")


def _table(out: Out, plan: Plan, title: str, states: Sequence[str]) -> None:
    rows = []
    for outcome, state in zip(plan.outcomes, states, strict=True):
        offsets = [f"{p.offset:+d}" for p in outcome.places if p.offset]
        fuzz = max((p.fuzz for p in outcome.places), default=0)
        notes = ([f"offset {', '.join(offsets)}"] if offsets else []) + (
            [f"fuzz {fuzz}"] if fuzz else []
        )
        rows.append((outcome.patch.name, str(len(outcome.changes)), state, "; ".join(notes)))
    if rows:
        name = f"{plan.dist.name} {plan.dist.version}" + (f": {title}" if title else "")
        out.table(name, ("patch", "files", "state", ""), rows, right="files")


def _patch(outcome: Any, plan: Plan, state: str) -> dict[str, Any]:
    from patchkit.cli.apply_loose import patch_json

    return {**patch_json(outcome, state), "package": plan.dist.name}


def _package(plan: Plan) -> dict[str, Any]:
    state = plan.state
    return {
        "name": plan.dist.name,
        "version": plan.dist.version,
        "state": plan.kind,
        "stack": state.stack if state is not None else None,
        "series": state.digest if state is not None else None,
        "changed": list(plan.changed),
    }
