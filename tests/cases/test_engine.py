"""Every case that the engine decides, in memory: verdict, reason, words, offsets, bytes.

Left to other tests: what needs an installed package, a lock, a pin's version or the reading of
the series file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from patchkit.engine.apply import Outcome, apply_patch
from patchkit.engine.chain import Chain, Step, apply_chain
from patchkit.engine.model import MemoryTree
from patchkit.engine.parse import parse
from patchkit.engine.rule import Allow, Rule
from patchkit.errors import Finding, Refused
from tests.cases.loader import Case, load_cases, said, tree_snapshot

CASES = [
    case
    for case in load_cases()
    if not case.installed
    and case.verdict != "usage-error"
    and not {"recorded", "pin"} & set(case.expect)
]


@dataclass
class Ran:
    """What the engine made of a case."""

    state: str
    findings: Sequence[Finding]
    notes: Sequence[Finding] = ()
    tree: MemoryTree = field(default_factory=MemoryTree)
    outcomes: Sequence[Outcome] = ()

    @property
    def text(self) -> str:
        return said([*self.findings, *self.notes]) + "\n" + self.state


def allowed(case: Case) -> Allow:
    allow = Allow()
    for permission in case.allow:
        key, _, value = permission.partition("=")
        allow = (
            replace(allow, fuzz=int(value)) if key == "fuzz" else replace(allow, line_endings=value)
        )
    return allow


def run(case: Case) -> Ran:
    tree = case.tree()
    rule = Rule(allow=allowed(case), pin_base=case.expect.get("base_is") == "pin")
    try:
        patches = [parse(step.data, step.name) for step in case.steps()]
    except Refused as refused:
        return Ran("refused", refused.findings, tree=tree)
    if case.is_series:
        steps = [
            Step(patch, step.strip, step.reverse)
            for patch, step in zip(patches, case.steps(), strict=True)
        ]
        return of_chain(apply_chain(tree, steps, rule), tree)
    outcome = apply_patch(tree, patches[0], rule)
    after = tree.with_changes(outcome.changes)
    return Ran(outcome.state, outcome.findings, outcome.notes, after, [outcome])


def of_chain(chain: Chain, tree: MemoryTree) -> Ran:
    state = "applied" if chain.ok else "refused"
    return Ran(state, chain.findings, chain.notes, tree.with_changes(chain.changes), chain.outcomes)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case: Case) -> None:
    base = tree_snapshot(case.tree())
    clock = time.process_time()
    ran = run(case)
    # The command's test measures it whole, and its memory.
    assert time.process_time() - clock < case.expect.get("limits", {}).get("seconds", 8) / 4
    assert ran.state == case.verdict
    if case.verdict == "applied":
        assert ran.findings == ()
        assert tree_snapshot(ran.tree) == case.expected(base)
        names = {note.name for note in ran.notes}
        assert ("offset" in names) == (case.reason == "offset")
        assert ("fuzz" in names) == any(a.startswith("fuzz") for a in case.allow)
    else:
        assert {f.name for f in ran.findings} == ({case.reason} if case.reason else set())
        assert tree_snapshot(ran.tree) == base
    read_elsewhere = case.expect.get("unlisted", ())
    words = () if read_elsewhere else case.words
    assert [word for word in words if word not in ran.text] == []
    # Renderers quote Where.file; everything else must be safe to print as it is.
    shown = [
        text
        for f in (*ran.findings, *ran.notes)
        for text in (f.message, f.expected, f.found, f.next, *f.details)
    ]
    assert [text for text in shown if not text.isprintable()] == []


def test_a_series_of_one_comes_to_the_same() -> None:
    for case in CASES:
        if case.is_series or case.generated:
            continue
        ran = run(case)
        if not ran.outcomes:
            continue
        rule = Rule(pin_base=case.expect.get("base_is") == "pin")
        step = Step(ran.outcomes[0].patch, None, allow=allowed(case))
        chain = apply_chain(case.tree(), [step], rule)
        assert [o.state for o in chain.outcomes] == [case.verdict], case.name
        assert [f.name for f in chain.findings] == [f.name for f in ran.findings], case.name


@pytest.mark.parametrize("case", [c for c in CASES if "offsets" in c.expect], ids=lambda c: c.name)
def test_hunks_are_found_at_the_offsets_of_the_case(case: Case) -> None:
    found = {o.patch.name: [place.offset for place in o.places] for o in run(case).outcomes}
    offsets = case.expect["offsets"]
    assert found == (offsets if case.is_series else {"input.patch": offsets})


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if "directory" in c.expect and not c.is_series and not c.generated],
    ids=lambda c: c.name,
)
def test_root_is_found_without_being_told(case: Case) -> None:
    [outcome] = run(case).outcomes
    assert outcome.root.directory == case.expect["directory"]
    assert outcome.root.strip == case.expect["strip"]


@pytest.mark.parametrize(
    "case", [c for c in CASES if "candidate" in c.expect], ids=lambda c: c.name
)
def test_candidate_is_named_and_not_used(case: Case) -> None:
    ran = run(case)
    [outcome] = ran.outcomes
    want = case.expect["candidate"]
    found = [(c.hunk, c.line, c.fuzz) for c in outcome.candidates]
    assert found == [(want["hunk"], want["line"], want["fuzz"])]
    assert outcome.changes == {}


def test_second_apply_of_a_case_finds_it_there() -> None:
    """Where the tree alone can tell. It cannot for an insertion whose context still holds, nor
    for a deleted file; the record of the first apply decides those."""
    silent = {"insertion-applies-twice"}
    for case in CASES:
        if case.verdict != "applied" or case.is_series or case.generated or case.allow:
            continue
        ran = run(case)
        [outcome] = ran.outcomes
        if case.name in silent or all(s.kind == "delete" for s in outcome.patch.sections):
            continue
        again = apply_patch(ran.tree, outcome.patch, root=outcome.root)
        assert again.state == "already-applied", (case.name, said(again.findings))


def test_reverse_of_a_case_gives_its_base_back() -> None:
    """Permission bits aside where the patch only states the old ones."""
    for case in CASES:
        if case.verdict != "applied" or case.is_series or case.generated or case.allow:
            continue
        ran = run(case)
        [outcome] = ran.outcomes
        undone = apply_patch(ran.tree, outcome.patch, root=outcome.root, reverse=True)
        assert undone.state == "applied", (case.name, said(undone.findings))
        back = tree_snapshot(ran.tree.with_changes(undone.changes))
        assert back == tree_snapshot(case.tree()), case.name
