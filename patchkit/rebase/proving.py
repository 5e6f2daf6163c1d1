"""Proofs on another release: text alone lies, a proof on the bare tree does not.

A patch whose witnesses all pass on the bare release is obsolete there, however well it applies;
one whose proof fails on the patched tree is broken there, however cleanly it merged. A proof that
cannot be judged (broken) gives neither verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from patchkit.derive.base import Base
from patchkit.engine.model import File
from patchkit.prove.children import none_outlives_us
from patchkit.prove.judge import BROKEN, GREEN, Seen, green, obsolete
from patchkit.prove.kept import kept
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import RULES, Prover
from patchkit.rebase.plan import CONFLICT, DROPPED, OBSOLETE, PROOF_FAILS, UPSTREAMED, Cell, Row
from patchkit.store.repo import Store
from patchkit.store.results import key_of

NOT_HERE = "not proven here"
PROVEN = "proven"
CANNOT = "proof-broken"


def on_bare(store: Store, base: Base, proof: Proof, environment: str) -> str:
    """What an earlier run on the bare release says: obsolete, proof-broken or not proven here
    (no run, or witnesses that fail, as they should)."""
    seen = _known(store, proof, base.tree_id, environment)
    verdict = obsolete(seen).state if seen is not None else ""
    return {GREEN: OBSOLETE, BROKEN: CANNOT}.get(verdict, NOT_HERE)


def _known(store: Store, proof: Proof, tree: str, environment: str) -> Seen | None:
    return kept(store, key_of(RULES, "cpu", proof.sha256, tree, environment))


def recorded(store: Store, row: Row, proofs: Mapping[str, Proof], environment: str) -> Row:
    """The row with what earlier runs of its proofs said of these very trees."""

    def seen(proof: Proof, tree: str) -> Seen | None:
        return _known(store, proof, tree, environment)

    patched = patched_tree(store, row) if proofs else ""
    cells = []
    for cell in row.cells:
        proof = proofs.get(cell.patch)
        words = NOT_HERE
        if proof is not None:
            words = said(cell, seen(proof, row.base.tree_id), seen(proof, patched))
        cells.append(replace(cell, proof=words))
    return replace(row, cells=tuple(cells))


def proven(prover: Prover, row: Row, proofs: Mapping[str, Proof]) -> Row:
    """The row with its proofs run: on the bare release, and on the result; several at once."""
    patched = patched_tree(prover.trees.store, row)
    asked = [
        (proof, tree)
        for cell in row.cells
        if (proof := proofs.get(cell.patch)) is not None and cell.text != DROPPED
        for tree in ((row.base.tree_id, patched) if cell.carried else (row.base.tree_id,))
    ]
    # The store's pipe is for one thread: the trees are made first.
    for tree in dict.fromkeys(tree for _, tree in asked):
        prover.trees.folder(tree)
    with none_outlives_us(), ThreadPoolExecutor(prover.workers) as pool:
        runs = pool.map(lambda pair: prover.seen(*pair), asked)
        seen = {(proof.patch, tree): run for (proof, tree), run in zip(asked, runs, strict=True)}
    cells = []
    for cell in row.cells:
        bare = seen.get((cell.patch, row.base.tree_id))
        after = seen.get((cell.patch, patched)) if cell.carried else None
        cells.append(replace(cell, proof=said(cell, bare, after)))
    return replace(row, cells=tuple(cells))


def said(cell: Cell, bare: Seen | None, after: Seen | None) -> str:
    """One word on a cell: obsolete, proven, proof-fails, proof-broken or not proven here."""
    if cell.text == DROPPED or (bare is None and after is None):
        return NOT_HERE
    if bare is not None:
        verdict = obsolete(bare).state
        if verdict == GREEN:
            return OBSOLETE
        if verdict == BROKEN and cell.text in (CONFLICT, UPSTREAMED):
            return CANNOT
    if after is None or not cell.carried:
        return NOT_HERE
    verdict = green(after).state
    return PROVEN if verdict == GREEN else CANNOT if verdict == BROKEN else PROOF_FAILS


def patched_tree(store: Store, row: Row) -> str:
    """The release's tree with every carried patch on it."""
    changes: dict[str, File | None] = {}
    for cell in row.cells:
        if cell.carried:
            changes.update(cell.changes)
    return store.write_tree(row.base.tree_id, changes)
