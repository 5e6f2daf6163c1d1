"""Smaller changes that a proof has to see: a patch less one hunk, and mutants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchkit.derive.derive import Derived
from patchkit.engine.apply import apply_patch
from patchkit.engine.model import File, Patch
from patchkit.engine.parse import parse
from patchkit.engine.rule import Rule
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.prove.judge import BROKEN, RED, Verdict
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import Prover

APART = Verdict(BROKEN, ("the rest of the patch does not apply without it",))


@dataclass(frozen=True)
class Variant:
    """What a proof says of a smaller change. kind: hunk or mutant. place: which one, in words."""

    kind: str
    place: str
    verdict: Verdict

    @property
    def red(self) -> bool:
        """Whether the proof goes red on it."""
        return self.verdict.state == RED


def without_hunk(patch: Patch, at: int) -> Patch | None:
    """The patch less its hunk number `at` (0-based over the whole patch); None where the rest
    is no patch: its section would be empty."""
    count = -1
    sections = []
    for section in patch.sections:
        hunks = []
        for hunk in section.hunks:
            count += 1
            if count != at:
                hunks.append(hunk)
        if hunks or not section.hunks:
            sections.append(replace(section, hunks=tuple(hunks)))
    return replace(patch, sections=tuple(sections)) if sections else None


def left_out_trees(
    prover: Prover, derived: Derived, trees: Sequence[str], name: str
) -> list[tuple[str, str]]:
    """For each hunk of `name`, its place in words and the tree after the patch without it.

    The id is "" where the rest does not apply without that hunk (the hunk is needed by others).
    """
    number = derived.names.index(name)
    store = prover.trees.store
    before = store.tree(trees[number])
    patch = derived.outcomes[number].patch
    out = []
    for at, (section, hunk_number, _) in enumerate(patch.hunks()):
        place = f"{section.path.removeprefix('b/')} hunk {hunk_number}"
        rest = without_hunk(patch, at)
        changes: Mapping[str, File | None] = {}
        if rest is not None:
            root = derived.outcomes[number].root
            outcome = apply_patch(before, rest, Rule(), root)
            if outcome.state != "applied":
                out.append((place, ""))
                continue
            changes = outcome.changes
        out.append((place, store.write_tree(trees[number], changes)))
    return out


def mutant_trees(
    prover: Prover, derived: Derived, trees: Sequence[str], proof: Proof
) -> list[tuple[str, str]]:
    """For each mutant of the proof its name and the patched tree with it. Raises Refused where a
    mutant does not apply."""
    store = prover.trees.store
    number = derived.names.index(proof.patch)
    out = []
    for path in proof.mutants:
        after = store.tree(trees[number + 1])
        outcome = apply_patch(after, parse(read_file(path), path.name), Rule())
        if outcome.state != "applied":
            raise Refused(
                Finding(
                    "proof-broken",
                    f"the mutant {path.name} does not apply to the tree after its patch",
                    Where(patch=proof.patch, file=str(path.name)),
                    expected="a small wrong edit of the patched tree",
                    found=outcome.state,
                    next=f"make it anew: git diff in patchkit edit {proof.patch}",
                )
            )
        out.append((path.stem, store.write_tree(trees[number + 1], outcome.changes)))
    return out
