"""Apply under the lock: nothing is given out that is not exactly what was locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.check.digests import compare_series
from patchkit.derive.base import Base, Bases
from patchkit.derive.prefix import Counts, Memory, Prefix, memory_of
from patchkit.derive.project import Project
from patchkit.derive.selection import Selection
from patchkit.errors import Finding, Refused
from patchkit.series.listing import Listing
from patchkit.series.lockfile import Chain as LockedChain
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin
from patchkit.series.quilt import Entry
from patchkit.store.commits import Chain
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Row:
    """One patch of the series: what it changes, and what became of it (applied, refused, left
    out, not tried)."""

    patch: str
    guard: str | None
    files: int
    added: int
    removed: int
    state: str


@dataclass(frozen=True)
class Prepared:
    """A selection, applied in memory or known from before, and found as locked.

    chain: its commits and trees, None where something is wrong; findings then say what. rows:
    one a patch of the series, left-out ones too.
    """

    pin: Pin
    base: Base
    rows: tuple[Row, ...]
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


@dataclass(frozen=True)
class Job:
    """What is to be applied. chosen: for each entry, whether it is taken. locked: the chain that
    the lock has for the selection. notes: what was found before anything is applied."""

    pin: Pin
    selection: Selection
    listing: Listing
    chosen: tuple[bool, ...]
    locked: LockedChain
    store: Store
    base: Base
    notes: tuple[Finding, ...]

    @property
    def title(self) -> str:
        """Message of the base's commit."""
        return f"{self.pin.upstream} {self.pin.name}"


def prepare(
    project: Project, pin: Pin, selection: Selection, bases: Bases, *, source: str | None = None
) -> Prepared:
    """Check digests, apply what was not applied before, compare with the lock, store the commits.

    An edited proof changes no tree: `check` says it, this does not look. Raises Refused where the
    series or the lock cannot be read, EnvironmentFault where the source cannot be had.
    """
    listing = project.listing(pin.name)
    try:
        lock = project.lock(pin.name)
        locked = locked_chain(lock, selection)
    except Refused:
        project.series(pin.name)  # a patch that cannot be read is said first
        raise
    wrong = compare_series(pin, listing.file, listing.digests, lock)
    if wrong or listing.faults:
        project.series(pin.name)
    base = bases.get(pin, source)
    notes = (*listing.notes, *base.gaps, *base.drift)
    chosen = selection.of(listing)
    job = Job(pin, selection, listing, chosen, locked, bases.store, base, notes)
    fit = not wrong and all(f.note for f in notes)
    memory = _memory(job) if fit else None
    known = memory.recall() if memory is not None else None
    if known is not None and len(known) == len(chosen):
        return as_locked(job, known)
    # The engine is imported only here: most runs find everything applied before.
    from patchkit.check.applying import apply, not_tried

    return apply(job, memory, known) if memory is not None else not_tried(job, wrong)


def _memory(job: Job) -> Memory:
    base = (job.base.source, job.base.tree_id)
    listing = job.listing
    return memory_of(
        job.store, listing.entries, listing.digests, job.chosen, job.locked, base, job.title
    )


def as_locked(job: Job, prefix: Prefix) -> Prepared:
    """All of the series is in the prefix."""
    states = ["applied" if taken else "left out" for taken in job.chosen]
    rows = rows_of(job.listing.entries, prefix.counts, states)
    return Prepared(job.pin, job.base, rows, Chain(prefix.commits, prefix.trees), job.notes)


def rows_of(
    entries: Sequence[Entry], counts: Sequence[Counts], states: Sequence[str]
) -> tuple[Row, ...]:
    """One row an entry."""
    return tuple(
        Row(entry.patch, entry.guard, *numbers, state)
        for entry, numbers, state in zip(entries, counts, states, strict=True)
    )


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
