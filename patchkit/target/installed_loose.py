"""Loose patches on installed packages: the plans, made in memory.

A patch may be for several packages; each package's state then holds the patch with the sections
that are its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchkit.engine.apply import Outcome
from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import File
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Rule
from patchkit.engine.strip import Root as PatchRoot
from patchkit.engine.strip import target_paths
from patchkit.errors import Finding, Refused, Where
from patchkit.series.lockfile import Blob, Lock, LockedPin, chain_of
from patchkit.series.lockfile import Chain as LockedChain
from patchkit.target.dist_info import Dist
from patchkit.target.installed_base import edited_since, others_edited
from patchkit.target.installed_cut import IN, NATIVE, OUT, Cut, cut
from patchkit.target.installed_owner import Found, find_owners
from patchkit.target.installed_packet import compiled
from patchkit.target.installed_plan import (
    ALREADY,
    APPLIED,
    REFUSED,
    Plan,
    patchable,
    read_base,
    with_kept,
)
from patchkit.target.installed_replay import left_at
from patchkit.target.installed_state import IN_PLACE, LOOSE, SERIES, Recorded, State
from patchkit.target.installed_tree import InstalledTree
from patchkit.target.installed_words import Words, of
from patchkit.target.installed_write import Part

_NO_ENTRIES = hashlib.sha256(b"").hexdigest()


def plan_loose(
    sites: Sequence[str],
    steps: Sequence[Step],
    rule: Rule,
    words: Words,
    exclude: Sequence[str] = (),
) -> list[Plan]:
    """Work out what the patches write, one plan a package. Nothing is written.

    Raises Refused where no package, or not one, is meant, or one cannot be patched in place.
    """
    found = find_owners(sites, steps, rule)
    dists = [tree.dist for tree in found.trees]
    states = {dist: patchable(dist, words) for dist in dists}
    for dist, state in states.items():
        if state is not None and state.kind == SERIES:
            raise Refused(_on_a_series(dist, state, words))
    done = {p.sha256 for state in states.values() if state for p in state.patches}
    wrong = [
        finding
        for tree in found.trees
        if (state := states[tree.dist]) is not None
        and any(step.patch.sha256 in {p.sha256 for p in state.patches} for step in steps)
        for finding in edited_since(tree.dist, state, tree.root, words, words.apply)
    ]
    if wrong:
        return [Plan(dists[0], REFUSED, findings=tuple(wrong))]
    return _Loose(found, states, rule, tuple(exclude)).plans(steps, done)


class _Loose:
    """One run: the packages, their states, and what becomes of each patch."""

    def __init__(
        self,
        found: Found,
        states: Mapping[Dist, State | None],
        rule: Rule,
        exclude: tuple[str, ...],
    ) -> None:
        self.found, self.states, self.rule, self.exclude = found, states, rule, exclude

    def plans(self, steps: Sequence[Step], done: set[str]) -> list[Plan]:
        first = self.found.trees[0].dist
        cuts: list[Cut] = []
        todo: list[Step] = []
        for step, root in zip(steps, self.found.roots):  # noqa: B905  (3.10; one a step)
            if step.patch.sha256 in done:
                continue
            made = cut(step.patch, root, self.place, self.exclude)
            cuts.append(made)
            todo.append(
                replace(step, patch=made.patch, strip=root.strip, directory=root.directory or None)
            )
        left_out = tuple(sorted({path for made in cuts for path in made.left_out}))
        notes = tuple(f for root in self.found.roots for f in root.findings)
        wrong = [f for made in cuts for f in made.findings]
        wrong += self.not_as_installed(todo)
        if wrong:
            return [Plan(first, REFUSED, left_out=left_out, findings=(*notes, *wrong))]
        chain = apply_chain(self.found.joined, todo, self.rule)
        outcomes = self.in_order(steps, done, chain.outcomes)
        if not chain.ok:
            return [Plan(first, REFUSED, None, outcomes, left_out, (*notes, *chain.findings))]
        if not chain.changes:
            return [Plan(first, ALREADY, None, outcomes, left_out, notes)]
        return self.per_package(todo, cuts, chain.outcomes, outcomes, left_out, notes)

    def place(self, path: str) -> str:
        joined = self.found.joined
        if path.partition("/")[0] not in {top for t in self.found.trees for top in t.dist.tops}:
            return NATIVE if compiled(path) else OUT
        return NATIVE if compiled(path) and joined.get(path) is None else IN

    def not_as_installed(self, steps: Sequence[Step]) -> list[Finding]:
        """foreign-edit for every file to be patched that is not as RECORD says."""
        paths: dict[str, None] = {}
        for step in steps:
            for section in step.patch.sections:
                try:
                    both = target_paths(section, _root(step))
                except ValueError:
                    continue
                paths.update((p, None) for p in both if p is not None)
        found = []
        for tree in self.found.trees:
            own = [p for p in paths if self.found.owner(p) == tree.dist]
            found += read_base(tree.root, tree, None, own)[1]
        return found

    def in_order(
        self, steps: Sequence[Step], done: set[str], outcomes: Sequence[Outcome]
    ) -> tuple[Outcome, ...]:
        rest = iter(outcomes)
        return tuple(
            Outcome(step.patch, "already-applied", root=root)
            if step.patch.sha256 in done
            else next(rest)
            for step, root in zip(steps, self.found.roots)  # noqa: B905  (3.10; one a step)
        )

    def per_package(
        self,
        steps: Sequence[Step],
        cuts: Sequence[Cut],
        outcomes: Sequence[Outcome],
        shown: tuple[Outcome, ...],
        left_out: tuple[str, ...],
        notes: tuple[Finding, ...],
    ) -> list[Plan]:
        plans = []
        for tree in self.found.trees:
            mine = [self.own(tree.dist, o.changes) for o in outcomes]
            if not any(mine):
                continue
            plan = self.plan(tree, steps, cuts, outcomes, mine, left_out)
            plans.append(replace(plan, outcomes=shown, findings=(*notes, *plan.findings)))
            notes = ()
        return plans

    def own(self, dist: Dist, changes: Mapping[str, File | None]) -> dict[str, File | None]:
        """The changes of one patch that are in this package. Raises Refused(ambiguous)."""
        out = {}
        for path, file in changes.items():
            owner = self.found.owner(path)
            if owner is None:
                raise Refused(_whose(path, self.found))
            if owner == dist:
                out[path] = file
        return out

    def there(self, dist: Dist, made: Cut, outcome: Outcome) -> bool:
        """Whether the patch is this package's, and all of it was there already: asked for, so
        that the record names it, with nothing to take back."""
        if outcome.state != "already-applied":
            return False
        both = [target_paths(section, outcome.root) for section in made.patch.sections]
        return any(self.found.owner(p) == dist for pair in both for p in pair if p is not None)

    def plan(
        self,
        tree: InstalledTree,
        steps: Sequence[Step],
        cuts: Sequence[Cut],
        outcomes: Sequence[Outcome],
        mine: Sequence[Mapping[str, File | None]],
        left_out: tuple[str, ...],
    ) -> Plan:
        dist, state = tree.dist, self.states[tree.dist]
        touched = sorted({path for changes in mine for path in changes})
        base, findings = read_base(tree.root, tree, state, touched)
        if findings:
            return Plan(dist, REFUSED, findings=tuple(findings))
        old = state.patches if state is not None else ()
        names = [p.name for p in old]
        new = []
        changes: list[Mapping[str, File | None]] = []
        for step, made, outcome, own in zip(steps, cuts, outcomes, mine):  # noqa: B905
            if own or self.there(dist, made, outcome):
                names.append(_unique(step.patch.name, names))
                new.append(_recorded(step, made, outcome, own, names[-1]))
                changes.append(own)
        final = dict(base)
        if state is not None:
            final.update({path: tree.get(path) for path in state.chain.paths})
        for own in changes:
            final.update(own)
        chain = _grown(state, names[len(old) :], base, changes)
        patches = (*old, *new)
        lock = Lock(
            LockedPin(LOOSE, dist.name),
            _NO_ENTRIES,
            tuple((p.name, p.sha256) for p in patches),
            {},
            chain,
        )
        kept = with_kept(tree, final, base, patches)
        earlier = state.exclude if state is not None else ()
        after = State(
            IN_PLACE,
            LOOSE,
            None,
            lock,
            exclude=tuple(dict.fromkeys((*earlier, *self.exclude))),
            left_out=tuple(sorted({*left_out, *(state.left_out if state is not None else ())})),
            patches=patches,
            kept=kept,
        )
        part = Part(dist, state, after, final, base)
        other = tuple(others_edited(dist, tree.root, final, read=True))
        return Plan(dist, APPLIED, part, (), left_out, other, tuple(touched), after)


def _root(step: Step) -> PatchRoot:
    return PatchRoot(1 if step.strip is None else step.strip, step.directory or "")


def _recorded(
    step: Step, made: Cut, outcome: Outcome, own: Mapping[str, File | None], name: str
) -> Recorded:
    sections = []
    for number, section in zip(made.kept, made.patch.sections):  # noqa: B905  (3.10; equal)
        old, new = target_paths(section, outcome.root)
        if {old, new} & own.keys():
            sections.append(number)
    starts = tuple(row for row in left_at(outcome.edits) if row[0] in own)
    return Recorded(
        name,
        step.patch.sha256,
        step.patch.data,
        outcome.root.strip,
        outcome.root.directory,
        step.reverse,
        tuple(sections),
        starts,
    )


def _grown(
    state: State | None,
    names: Sequence[str],
    base: Mapping[str, File | None],
    changes: Sequence[Mapping[str, File | None]],
) -> LockedChain:
    """The chain of the state, with what the new patches do after it."""
    old = state.chain if state is not None else LockedChain()
    before = {path: _blob(file) for path, file in base.items()}
    done = [
        {p: s.blob for p, steps in old.paths.items() for s in steps if s.patch == name}
        for name in old.patches
    ]
    new = [{path: _blob(file) for path, file in own.items()} for own in changes]
    return chain_of((*old.patches, *names), {}, before, [*done, *new])


def _blob(file: File | None) -> Blob | None:
    return Blob(file.mode, file.oid) if file is not None else None


def _unique(name: str, names: Sequence[str]) -> str:
    """A name that no earlier patch has: two files of one name are two patches."""
    number, found = 1, name
    while found in names:
        number += 1
        stem, dot, end = name.rpartition(".")
        found = f"{stem}-{number}.{end}" if dot else f"{name}-{number}"
    return found


def _on_a_series(dist: Dist, state: State, words: Words) -> Finding:
    return Finding(
        "unsupported",
        f"{dist.name} is patched with a series: a loose patch on it would not be of the series",
        Where(file=dist.at("patchkit.json")),
        expected="the package as it was installed",
        found=of(state),
        next=f"put the patch into the series, or: {words.revert}",
    )


def _whose(path: str, found: Found) -> Finding:
    return Finding(
        "ambiguous",
        f"whose the new file {show_path(path)} is cannot be told",
        Where(file=path),
        expected="a folder in which one package has files",
        found="several of " + ", ".join(tree.dist.name for tree in found.trees),
        next="patch one package at a time",
    )
