"""Apply under the lock: nothing is given out that is not exactly what was locked."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.check import chains, digests
from patchkit.derive.base import Base, Bases
from patchkit.derive.derive import Derived, commit_all, derive
from patchkit.derive.project import Project
from patchkit.derive.proofs import locked_proofs
from patchkit.derive.relock import chain_from
from patchkit.derive.selection import Selection
from patchkit.errors import Finding, Refused
from patchkit.series.folder import Series
from patchkit.series.lockfile import Chain as LockedChain
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin
from patchkit.store.commits import Chain


@dataclass(frozen=True)
class Prepared:
    """A selection, applied in memory and found as locked.

    chain: its commits and trees, None where something is wrong; findings then say what.
    """

    pin: Pin
    series: Series
    base: Base
    derived: Derived | None
    chain: Chain | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)

    @property
    def tag(self) -> str:
        """The label of the patched tree: `PIN+pk` and 12 digits of its id."""
        return f"{self.pin.name}+pk{self.chain.tree[:12]}" if self.chain is not None else ""


def prepare(
    project: Project, pin: Pin, selection: Selection, bases: Bases, *, source: str | None = None
) -> Prepared:
    """Check digests, apply, compare with the lock, store the commits.

    Raises Refused where the series or the lock cannot be read, EnvironmentFault where the source
    cannot be had.
    """
    series = project.series(pin.name)
    lock = project.lock(pin.name)
    locked = locked_chain(lock, selection)
    proofs = locked_proofs(project, pin.name, series)
    # An edited proof changes no tree: check says it, apply need not.
    wrong = [
        f
        for f in digests.compare(pin, series, proofs, lock)
        if "/proofs/" not in (f.where.file or "")
    ]
    base = bases.get(pin, source)
    notes = [*series.findings, *base.gaps, *base.drift]
    if wrong or any(not f.note for f in notes):
        return Prepared(pin, series, base, None, None, (*notes, *wrong))
    derived = derive(series, base.tree(bases.store), selection)
    if not derived.ok:
        return Prepared(pin, series, base, derived, None, (*notes, *derived.findings))
    chain = commit_all(bases.store, derived, base.tree_id, f"{pin.upstream} {pin.name}")
    found = chain_from(derived, base.tree(bases.store), {base.source: chain.trees})
    wrong = chains.compare(
        pin.name, selection.name, first_patches(locked, len(derived.names)), found
    )
    findings = (*notes, *derived.findings, *wrong)
    return Prepared(pin, series, base, derived, None if wrong else chain, findings)


def locked_chain(lock: Lock, selection: Selection) -> LockedChain:
    """The chain of a selection (without its `upto`). Raises Refused(lock-stale)."""
    try:
        return lock.chain(selection.stack.name if selection.stack is not None else None)
    except KeyError:
        raise Refused(
            Finding(
                "lock-stale",
                f"stack {selection.name} is not in the lock: what it gives is not promised",
                expected="one of " + (", ".join(lock.stacks) or "none"),
                found=selection.name,
                next=f"patchkit lock --pin {lock.pin.name}",
            )
        ) from None


def first_patches(locked: LockedChain, count: int) -> LockedChain:
    """The first `count` patches of a locked chain."""
    if count >= len(locked.patches):
        return locked
    done = {"", *locked.patches[:count]}
    paths = {p: tuple(s for s in steps if s.patch in done) for p, steps in locked.paths.items()}
    return LockedChain(
        locked.patches[:count],
        {source: ids[: count + 1] for source, ids in locked.trees.items()},
        {p: steps for p, steps in paths.items() if len(steps) > 1},
    )
