"""A proof on smaller changes of its patch: does a test fail by assertion?

All are tried on the tree directly after the patch, where the proof must first be green. A run
ends at the first test that fails by assertion: one is enough. Runs share what they load from
outside the tree (nursery.py) where the proof is green that way, too; what is not noticed there is
run again in an interpreter of its own.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from patchkit.derive.derive import Derived
from patchkit.files.atomic import read_file
from patchkit.prove import run
from patchkit.prove.children import none_outlives_us
from patchkit.prove.judge import GREEN, RAISES, RED, Verdict, green, variant
from patchkit.prove.nursery import Nursery
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import Prover
from patchkit.prove.run import Where, environment_of
from patchkit.prove.variants import APART, Variant, left_out_trees, mutant_trees
from patchkit.upstreams import proving

WORTH = 2
"""Runs of one proof that are worth a nursery."""

MORE = 200
"""Modules that a proof loads beyond a nursery's that are worth another one."""


class Trials:
    """Tries proofs of one selection; a context manager, since it keeps a nursery between them."""

    def __init__(self, prover: Prover, derived: Derived, trees: Sequence[str]) -> None:
        self._prover, self._derived, self._trees = prover, derived, trees
        self._stack = ExitStack()
        self._nursery: Nursery | None = None
        self._modules: set[str] = set()

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *unused: object) -> None:
        self._stack.close()

    def of(self, proof: Proof, *, hunks: bool, mutants: bool) -> tuple[Verdict, list[Variant]]:
        """The proof directly after its patch, without later ones, and on each change. Where it
        is not green there, nothing is tried: red would say nothing."""
        prover, name = self._prover, proof.patch
        after = self._trees[self._derived.names.index(name) + 1]
        found: list[tuple[str, str, str]] = []
        if hunks:
            trees = left_out_trees(prover, self._derived, self._trees, name)
            found += [("hunk", place, tree) for place, tree in trees]
        if mutants:
            trees = mutant_trees(prover, self._derived, self._trees, proof)
            found += [("mutant", place, tree) for place, tree in trees]
        for tree in {after, *(tree for _, _, tree in found if tree)}:
            prover.trees.folder(tree)  # the store's pipe is for one thread
        new = {t for _, _, t in found if t and prover.known(proof, t, first=True) is None}
        with none_outlives_us():
            nursery = self._ready_for(proof, after) if len(new) >= WORTH else None
            known = prover.known(proof, after, first=True)
            if known is None:
                prover.told(name, "directly after it")
                known = prover.seen(proof, after)
            state = green(known)
            if state.state != GREEN:
                return state, []

            def one(each: tuple[str, str, str]) -> Variant:
                kind, place, tree = each
                words = f"{'without' if kind == 'hunk' else 'with'} {place}"
                return Variant(kind, place, self._verdict(proof, tree, nursery, words))

            with ThreadPoolExecutor(prover.workers) as pool:
                return state, list(pool.map(one, found))

    def _verdict(self, proof: Proof, tree: str, nursery: Nursery | None, words: str) -> Verdict:
        if not tree:
            return APART
        prover = self._prover
        touched = self._derived.outcomes[self._derived.names.index(proof.patch)].changes
        known = prover.known(proof, tree, first=True)
        if known is not None:
            return variant(known, touched)
        prover.told(proof.patch, words)
        if nursery is not None:
            seen = prover.run(proof, tree, first=True, runs=nursery.run)
            found = variant(seen, touched)
            if found.state in (RED, RAISES):
                prover.keep_part(proof, tree, seen)
                return found
        return variant(prover.seen(proof, tree, first=True), touched)

    def _ready_for(self, proof: Proof, after: str) -> Nursery | None:
        """A nursery in which the proof is green; None where that cannot be had."""
        for _ in range(2):
            with tempfile.TemporaryDirectory(prefix="patchkit-loaded-") as folder:
                loaded = os.path.join(folder, "loaded.json")
                nursery = self._nursery
                self._prover.told(
                    proof.patch,
                    "directly after it" + (", with torch loaded before" if nursery else ""),
                )
                runs = nursery.run if nursery is not None else None
                seen = self._prover.run(proof, after, loaded=loaded, runs=runs)
                if green(seen).state != GREEN or not os.path.exists(loaded):
                    if nursery is None:
                        return None
                    self._nursery = None  # try one of its own
                    continue
                self._prover.keep_part(proof, after, seen)
                modules = set(json.loads(read_file(loaded))["modules"])
                if nursery is not None and len(modules - self._modules) <= MORE:
                    return nursery
                self._raise(loaded, modules)
        return self._nursery if self._nursery is not None else None

    def _raise(self, loaded: str, modules: set[str]) -> None:
        """Start a nursery from that list."""
        prover = self._prover
        python, short = prover.environment.python, prover.environment.short
        prefix = prover.trees.bytecode(prover.trees.base.tree_id, python, short)
        scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="patchkit-home-"))
        env = environment_of(Where(python, "", prefix), scratch)
        prelude = proving(prover.trees.known).prelude
        nursery = self._stack.enter_context(Nursery(python, prelude, loaded, env, run.CPU))
        self._nursery, self._modules = (nursery, modules) if nursery.ready else (None, set())
        if not nursery.ready:
            prover.told("each run by itself", nursery.why())
