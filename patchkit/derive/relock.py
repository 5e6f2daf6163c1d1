"""The lock of a pin, made from what applying really gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.derive.derive import Derived, derive, trees_of
from patchkit.derive.project import Project
from patchkit.derive.proofs import locked_proofs
from patchkit.derive.selection import Selection
from patchkit.engine.model import File, Tree
from patchkit.errors import Finding
from patchkit.series.folder import Series
from patchkit.series.lockfile import Blob, Chain, Lock, LockedPin, chain_of
from patchkit.series.pins import Pin
from patchkit.series.quilt import entries_digest
from patchkit.source import Base
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Made:
    """A lock, or None where some patch does not hold; findings say why, and notes."""

    lock: Lock | None
    findings: tuple[Finding, ...]


def make_lock(
    project: Project,
    pin: Pin,
    series: Series,
    store: Store,
    bases: Mapping[str, Base],
    proofs: Mapping[str, str] | None = None,
) -> Made:
    """Derive the whole series and every stack on each source's base tree.

    bases: source name -> its base. Touched paths must read alike in every source. proofs: their
    digests, where they are not to be those on the disk.
    """
    findings: list[Finding] = []
    chains: dict[str | None, Chain] = {}
    stacks = {stack.name: stack for stack in project.locked_stacks}
    same: dict[tuple[bool, ...], Chain] = {}  # by what is selected: many stacks hold all of it
    for name in (None, *stacks):
        selection = Selection(None if name is None else stacks[name])
        chosen = tuple(selection.of(series))
        if chosen in same:
            chains[name] = same[chosen]
            continue
        trees: dict[str, tuple[str, ...]] = {}
        derived: Derived | None = None
        for source, base in sorted(bases.items()):
            derived = derive(series, base.tree(store), selection, chosen)
            findings.extend(f for f in derived.findings if f not in findings)
            if derived.ok:
                trees[source] = trees_of(store, derived, base.tree_id)
        if derived is not None and derived.ok:
            made = chain_from(derived, next(iter(bases.values())).tree(store), trees)
            chains[name] = same[chosen] = made
    if any(not f.note for f in findings) or None not in chains:
        return Made(None, tuple(findings))
    lock = Lock(
        locked_pin(pin),
        entries_digest(series.file.entries),
        tuple((p.name, p.sha256) for p in series.patches),
        locked_proofs(project, pin.name, series) if proofs is None else proofs,
        chains[None],
        {name: chain for name, chain in chains.items() if name is not None},
    )
    return Made(lock, tuple(findings))


def locked_pin(pin: Pin) -> LockedPin:
    """The pin as the lock repeats it."""
    return LockedPin(pin.name, pin.upstream, pin.commit, pin.commit_prefix, dict(pin.files))


def chain_from(derived: Derived, base: Tree, trees: Mapping[str, tuple[str, ...]]) -> Chain:
    """The lock's chain of what was derived on `base`."""
    before = {path: blob_of(base.get(path)) for path in derived.touched()}
    changes = [{p: blob_of(f) for p, f in c.items()} for c in derived.changes()]
    return chain_of(derived.names, trees, before, changes)


def blob_of(file: File | None) -> Blob | None:
    """A file as the lock knows it."""
    return Blob(file.mode, file.oid) if file is not None else None
