"""A series of patches on one tree: all of them, or every reason why not, in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.engine.actions import resolve
from patchkit.engine.apply import put
from patchkit.engine.history import History, runs
from patchkit.engine.model import File, Hunk, Patch, Tree
from patchkit.engine.order import Did, did, duplicates, patched_up_to, wrong_order
from patchkit.engine.outcome import Outcome, Told
from patchkit.engine.perform import stated_starts
from patchkit.engine.place import stated
from patchkit.engine.quote import show_path
from patchkit.engine.rule import LOOSE, Allow, Rule
from patchkit.engine.shifts import Shifts
from patchkit.engine.strip import Root, find_root
from patchkit.engine.work import Work
from patchkit.errors import Finding


@dataclass(frozen=True)
class Step:
    """One entry of a series. strip: -pN, None to look for the root; directory: as
    `Root.directory`. reverse: -R. selected: False for a patch that a stack leaves out: only its
    line numbers count. allow: what the patch allows by name; a chain does not use the rule's own.
    """

    patch: Patch
    strip: int | None = 1
    reverse: bool = False
    selected: bool = True
    allow: Allow = field(default_factory=Allow)
    directory: str | None = None


@dataclass(frozen=True)
class Chain:
    """What became of a series. outcomes: one a step, in order. changes: what the whole series
    makes of the tree, path -> file or None; empty unless ok. findings: every finding of every
    step, in order. ok: nothing stands against writing `changes`.
    """

    outcomes: tuple[Outcome, ...]
    changes: Mapping[str, File | None]
    findings: tuple[Finding, ...]
    ok: bool

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Every note of every step, in order."""
        return tuple(note for outcome in self.outcomes for note in outcome.notes)


def apply_chain(tree: Tree, steps: Sequence[Step], rule: Rule = LOOSE) -> Chain:
    """Put the steps' patches on `tree` in memory, one on the other.

    A patch that fails leaves nothing behind; later patches are still tried, and whether they
    fail because of it is said. Nothing is written and `tree` is not changed.
    """
    start = Work(tree)
    run = _Run(start, steps, rule)
    outcomes = run.all()
    if _failing(outcomes):
        first = 0 if rule.exact or rule.pin_base else patched_up_to(start, steps)
        if first:
            again = _Run(start, steps, rule, there=first)
            found = again.all()
            if _failing(found) < _failing(outcomes):
                run, outcomes = again, found
    if _failing(outcomes):
        selected = [step.selected for step in steps]
        if not all(selected):
            from patchkit.engine.cuts import guard_cuts

            whole = _Run(start, [replace(step, selected=True) for step in steps], rule).all()
            outcomes = guard_cuts(outcomes, whole, selected)
        outcomes = wrong_order(start, steps, outcomes)
    findings = tuple(f for outcome in outcomes for f in outcome.findings)
    ok = not findings and all(outcome.ok for outcome in outcomes)
    return Chain(tuple(outcomes), dict(run.work.changes) if ok else {}, findings, ok)


def _failing(outcomes: Sequence[Outcome]) -> int:
    return sum(1 for outcome in outcomes if not outcome.ok)


class _Run:
    """One pass over the steps. there: so many first steps are in the tree already."""

    def __init__(self, start: Work, steps: Sequence[Step], rule: Rule, there: int = 0) -> None:
        self.steps, self.rule, self.there = steps, rule, there
        self.names = [step.patch.name for step in steps]
        self.work = start.again()
        self.history = History()
        self.shifts: dict[str, Shifts] = {}
        self.failed: dict[str, list[int]] = {}
        self.hunks: dict[Did, int] = {}

    def all(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for number, step in enumerate(self.steps):
            root = self.root(step)
            if not step.selected:
                self.leave_out(step, root)
                outcomes.append(Outcome(step.patch, "left-out", root=root))
            elif number < self.there:
                outcomes.append(Outcome(step.patch, "already-applied", root=root))
            else:
                outcomes.append(self.put(number, step, root))
        return outcomes

    def root(self, step: Step) -> Root:
        if step.strip is not None:
            return Root(step.strip, step.directory or "")
        return find_root(self.work, step.patch, directory=step.directory)

    def put(self, number: int, step: Step, root: Root) -> Outcome:
        rule = self.rule if step.allow == self.rule.allow else replace(self.rule, allow=step.allow)
        told = _Told(self)
        mapped = _Mapped(self.shifts)
        starts = mapped.starts if self.shifts else stated_starts
        outcome = put(
            self.work, step.patch, rule, root, reverse=step.reverse, starts=starts, told=told
        )
        outcome = duplicates(outcome, self.history, self.hunks, self.names)
        if outcome.state == "applied":
            self.work.take(outcome.changes)
            self.history.record(number, outcome.edits)
            # What the last one did, no later one can repeat.
            for edit in outcome.edits if number + 1 < len(self.steps) else ():
                for hunk in edit.hunks:
                    self.hunks.setdefault(did(edit, hunk), number)
            if self.shifts:
                mapped.keep(outcome)
        elif outcome.state == "refused":
            outcome = self.with_reasons(outcome)
            for action in resolve(step.patch, root, step.reverse)[0]:
                for path in {action.old, action.new}:
                    if path is not None:
                        self.failed.setdefault(path, []).append(number)
        return outcome

    def leave_out(self, step: Step, root: Root) -> None:
        """Count the lines of a patch that is not applied."""
        actions, _ = resolve(step.patch, root, step.reverse)
        for action in actions:
            if action.old is not None and action.kind == "modify":
                shifts = self.shifts.setdefault(action.old, Shifts())
                shifts.leave_out(list(runs(action.hunks, [stated(h) for h in action.hunks])))

    def with_reasons(self, outcome: Outcome) -> Outcome:
        """Add to the findings what the patches before have to do with them."""
        findings = []
        for finding in outcome.findings:
            path = finding.where.file
            reasons = self.reasons(finding, path) if path is not None else []
            if reasons:
                finding = replace(finding, details=(*finding.details, *reasons))
            findings.append(finding)
        return replace(outcome, findings=tuple(findings))

    def reasons(self, finding: Finding, path: str) -> list[str]:
        reasons = []
        gone = self.history.gone(path) if finding.name == "missing-target" else None
        if gone is not None:
            reasons.append(f"{self.name(gone)} deleted or renamed it")
        failed = self.failed.get(path)
        if failed:
            shown = ", ".join(self.name(n) for n in failed[:5])
            reasons.append(f"it may follow from this, which comes first and fails: {shown}")
        return reasons

    def name(self, number: int) -> str:
        """A step's patch, for a message."""
        return show_path(self.steps[number].patch.name)


class _Told(Told):
    """What the chain knows of the lines where a hunk fails."""

    def __init__(self, run: _Run) -> None:
        self.run = run

    def changed_by(self, path: str, start: int, stop: int) -> str:
        number = self.run.history.changed(path, max(start, 0), max(stop, 1))
        if number is None:
            return ""
        return f"lines {start + 1} to {stop} were last changed by {self.run.name(number)}"


class _Mapped:
    """Stated lines of one patch, less those of left-out patches."""

    def __init__(self, shifts: dict[str, Shifts]) -> None:
        self.shifts = shifts
        self.own: dict[str, Shifts] = {}

    def starts(self, path: str, hunks: Sequence[Hunk]) -> Sequence[int]:
        said = [stated(hunk) for hunk in hunks]
        if path not in self.shifts:
            return said
        # A patch may have several sections for one file, each stated after the one before.
        own = self.own.setdefault(path, Shifts(self.shifts[path].regions))
        out = own.actual(said)
        own.take(list(runs(hunks, said)))
        return out

    def keep(self, outcome: Outcome) -> None:
        """The patch holds: its lines count from now on."""
        self.shifts.update(self.own)
        for edit in outcome.edits:
            if edit.old is not None and edit.old != edit.new:
                moved = self.shifts.get(edit.old)
                if moved is not None and edit.new is not None:
                    self.shifts[edit.new] = Shifts(moved.regions)
        for path, file in outcome.changes.items():
            if file is None:
                self.shifts.pop(path, None)
