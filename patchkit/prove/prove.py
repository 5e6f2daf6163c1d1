"""Proving patches: which trees, which runs, what was known already, and what it comes to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from patchkit.derive.derive import Derived, trees_of
from patchkit.prove.alike import alike
from patchkit.prove.children import none_outlives_us
from patchkit.prove.environment import Environment
from patchkit.prove.judge import BROKEN, GREEN, RED, Seen, Verdict, green, red
from patchkit.prove.kept import keep, kept
from patchkit.prove.proofs import Proof
from patchkit.prove.run import Runs, run_proof
from patchkit.prove.run import Where as At
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

    def seen(self, proof: Proof, tree: str, *, first: bool = False) -> Seen:
        """One proof on one tree, from what is known or by running it.

        first: the run may end at the first test that fails by assertion. Such a run is kept
        apart, and never taken for a whole one.
        """
        known = self.known(proof, tree, first=first)
        if known is not None:
            return known
        seen = self.run(proof, tree, first=first)
        if not seen.lost:
            taken, seen = seen.taken, replace(seen, taken="")
            cut = any(row["outcome"] == "not run" for row in seen.tests.values())
            key, group = self._keys(self._kinds[cut], proof, tree)
            keep(self.trees.store, key, seen)
            self.trees.store.results.add(group, {tree: Result((), taken)})
        return seen

    def run(
        self,
        proof: Proof,
        tree: str,
        *,
        first: bool = False,
        loaded: str = "",
        runs: Runs | None = None,
    ) -> Seen:
        """Run the proof, whatever is known, and keep nothing: see run_proof."""
        at = At(
            self.environment.python,
            self.trees.folder(tree),
            self.trees.bytecode(tree, self.environment.python, self.environment.short),
        )
        return run_proof(proof.module, at, gpu=self.gpu, first=first, loaded=loaded, runs=runs)

    def keep_part(self, proof: Proof, tree: str, seen: Seen) -> None:
        """Keep a run that is not a whole one in an interpreter of its own."""
        keep(self.trees.store, self._keys(self._kinds[1], proof, tree)[0], replace(seen, taken=""))

    def known(self, proof: Proof, tree: str, *, first: bool = False) -> Seen | None:
        """What is known of one proof on one tree. first: by a run that ended early, too."""
        if self.fresh:
            return None
        for each in self._kinds[: 2 if first else 1]:
            found = self._known(each, proof, tree)
            if found is not None:
                return found
        return None

    @property
    def _kinds(self) -> tuple[str, str]:
        return ("gpu", "gpu first") if self.gpu else ("cpu", "cpu first")

    def _keys(self, kind: str, proof: Proof, tree: str) -> tuple[str, str]:
        """The key that a run is kept under, and the group of runs that may speak of others."""
        digest = self.environment.digest
        return (
            key_of(RULES, kind, proof.sha256, tree, digest),
            key_of(RULES, "alike", kind, proof.sha256, digest),
        )

    def _known(self, kind: str, proof: Proof, tree: str) -> Seen | None:
        """What a kept run of that kind says of the tree."""
        key, group = self._keys(kind, proof, tree)
        known = kept(self.trees.store, key)
        if known is not None:
            return known
        with self._store_lock:
            other = alike(self.trees.store, self.trees.known, group, tree)
        if other is not None:
            known = kept(self.trees.store, self._keys(kind, proof, other)[0])
            if known is not None:
                keep(self.trees.store, key, known)
        return known

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


__all__ = ["GPU_ONLY", "NOT_PROVEN", "NO_PROOF", "PROVEN", "Proven", "Prover", "Target", "trees_of"]
