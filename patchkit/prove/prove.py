"""Proving patches: which trees, which runs, what was known already, and what it comes to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from patchkit.derive.derive import Derived, trees_of
from patchkit.engine.apply import apply_patch
from patchkit.engine.model import File, Patch
from patchkit.engine.parse import parse
from patchkit.engine.rule import Rule
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.prove.alike import alike
from patchkit.prove.children import none_outlives_us
from patchkit.prove.environment import Environment
from patchkit.prove.judge import BROKEN, GREEN, RED, Seen, Verdict, goes_red, green, red
from patchkit.prove.kept import keep, kept
from patchkit.prove.proofs import Proof
from patchkit.prove.run import Where as At
from patchkit.prove.run import run_proof
from patchkit.prove.trees import Trees
from patchkit.store.results import Result, key_of

PROVEN, NOT_PROVEN, NO_PROOF, GPU_ONLY = "proven", "not proven", "no proof", "gpu only"
RULES = "proof-2"
"""Raised when runs are judged or made differently, so that no older result is taken."""


@dataclass(frozen=True)
class Target:
    """A proof and its trees: before the patch, and the patched tree of the selection."""

    proof: Proof
    before: str
    after: str


@dataclass(frozen=True)
class Proven:
    """What became of one patch's proof. state: proven, not proven, no proof, gpu only, broken."""

    patch: str
    state: str
    red: Verdict | None = None
    green: Verdict | None = None
    seconds: float = 0.0
    extra: tuple[str, ...] = ()


@dataclass
class Prover:
    """Runs proofs on trees. known results are kept by proof, tree and environment."""

    trees: Trees
    environment: Environment
    workers: int = 2
    fresh: bool = False
    gpu: bool = False
    told: Callable[[str, str], None] = lambda patch, what: None
    _store_lock: threading.Lock = field(default_factory=threading.Lock)

    def seen(self, proof: Proof, tree: str) -> Seen:
        """One proof on one tree, from what is known or by running it."""
        kind = "gpu" if self.gpu else "cpu"
        key = key_of(RULES, kind, proof.sha256, tree, self.environment.digest)
        group = key_of(RULES, "alike", kind, proof.sha256, self.environment.digest)
        known = None if self.fresh else kept(self.trees.store, key)
        if known is None and not self.fresh:
            with self._store_lock:
                other = alike(self.trees.store, self.trees.known, group, tree)
            if other is not None:
                same = key_of(RULES, kind, proof.sha256, other, self.environment.digest)
                known = kept(self.trees.store, same)
                if known is not None:
                    keep(self.trees.store, key, known)
        if known is not None:
            return known
        at = At(
            self.environment.python,
            self.trees.folder(tree),
            self.trees.bytecode(tree, self.environment.python, self.environment.short),
        )
        seen = run_proof(proof.module, at, gpu=self.gpu)
        if not seen.lost:
            taken, seen = seen.taken, replace(seen, taken="")
            keep(self.trees.store, key, seen)
            self.trees.store.results.add(group, {tree: Result((), taken)})
        return seen

    def prove(self, targets: Sequence[Target]) -> list[Proven]:
        """Each target's proof red on its tree before and green on its tree after."""
        # The store's pipe is for one thread: the trees are made first.
        for tree in dict.fromkeys(t for x in targets for t in (x.before, x.after)):
            self.trees.folder(tree)
        with none_outlives_us(), ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self._one, targets))

    def _one(self, target: Target) -> Proven:
        name = target.proof.patch
        self.told(name, "red")
        before = self.seen(target.proof, target.before)
        if not before.tests and not before.trouble:
            return Proven(name, GPU_ONLY)
        self.told(name, "green")
        after = self.seen(target.proof, target.after)
        if _gpu_only(before) and _gpu_only(after):
            return Proven(name, GPU_ONLY)
        first, second = red(before), green(after)
        state = PROVEN if (first.state, second.state) == (RED, GREEN) else NOT_PROVEN
        if BROKEN in (first.state, second.state):
            state = BROKEN
        return Proven(name, state, first, second, before.seconds + after.seconds)


def _gpu_only(seen: Seen) -> bool:
    """Whether the proof has no test for this machine: pytest collected none."""
    return not seen.tests and not seen.trouble


def targets_of(
    derived: Derived, trees: Sequence[str], proofs: Mapping[str, Proof], *, directly: bool = False
) -> list[Target]:
    """A target for each patch that has a proof. trees: base, then one a patch. directly: the
    tree after is that of the patch itself, not of the whole selection."""
    out = []
    for number, name in enumerate(derived.names):
        if name in proofs:
            after = trees[number + 1 if directly else -1]
            out.append(Target(proofs[name], trees[number], after))
    return out


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


def killed(
    prover: Prover, proof: Proof, variants: Iterable[tuple[str, str]]
) -> list[tuple[str, bool]]:
    """For each variant (place, tree id) whether the proof goes red on it."""
    found = list(variants)
    for _, tree in found:
        if tree:
            prover.trees.folder(tree)

    def one(variant: tuple[str, str]) -> tuple[str, bool]:
        place, tree = variant
        return place, (not tree or goes_red(prover.seen(proof, tree)))

    with none_outlives_us(), ThreadPoolExecutor(prover.workers) as pool:
        return list(pool.map(one, found))


__all__ = ["GPU_ONLY", "NOT_PROVEN", "NO_PROOF", "PROVEN", "Proven", "Prover", "Target", "trees_of"]
