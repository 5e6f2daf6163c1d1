"""The part of an apply that was not done before: from the patches' bytes to commits, as locked."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.check import chains
from patchkit.check.counts import counts
from patchkit.check.locked import Job, Prepared, as_locked, first_patches, rows_of
from patchkit.derive.derive import Derived, commit_all, derive
from patchkit.derive.prefix import Counts, Memory, Prefix, marks_of
from patchkit.derive.relock import chain_from
from patchkit.errors import Finding
from patchkit.series.folder import Series, parse_listing


def apply(job: Job, memory: Memory, known: Prefix | None) -> Prepared:
    """Apply what is not known, else, where that does not come out as locked, everything.

    Raises Refused with every finding of every patch that cannot be read.
    """
    # A left-out patch moves the lines of later ones: what it would have done is not remembered.
    if known is not None and all(job.chosen[: len(known)]):
        done = _rest(job, memory, known)
        if done is not None:
            return done
    return _whole(job, memory)


def not_tried(job: Job, wrong: Sequence[Finding]) -> Prepared:
    """What is to be said where something is wrong before any patch is tried."""
    series = parse_listing(job.listing)
    rows = rows_of(series.entries, _counts(series), ["not tried"] * len(series.entries))
    return Prepared(job.pin, job.base, rows, None, (*_notes(job, series), *wrong))


def _rest(job: Job, memory: Memory, known: Prefix) -> Prepared | None:
    """The patches behind a known prefix; None where anything is to be said of them: what they
    have to do with the patches before only a whole run can tell."""
    promise = memory.promise
    assert promise is not None
    series = parse_listing(job.listing, first=len(known))
    tree = job.store.tree(known.trees[-1], job.base.fetch)
    derived = derive(series, tree, job.selection, job.chosen[len(known) :])
    if len(series.findings) > len(job.listing.notes) or derived.findings:
        return None
    chain = commit_all(job.store, derived, known.trees[-1], job.title, known.commits[-1])
    found = chain_from(derived, tree, {job.base.source: chain.trees})
    trees = (*known.trees, *chain.trees[1:])
    if trees != tuple(promise.trees[: len(trees)]):
        return None
    if any(mark != promise.marks[name] for name, mark in marks_of(found).items()):
        return None
    whole = Prefix((*known.commits, *chain.commits[1:]), trees, (*known.counts, *_counts(series)))
    memory.remember(whole, len(known))
    return as_locked(job, whole)


def _whole(job: Job, memory: Memory) -> Prepared:
    series = parse_listing(job.listing)
    tree = job.base.tree(job.store)
    derived = derive(series, tree, job.selection, job.chosen)
    notes = (*_notes(job, series), *derived.findings)
    numbers = _counts(series)
    rows = rows_of(series.entries, numbers, _states(job, derived))
    if not derived.ok:
        return Prepared(job.pin, job.base, rows, None, notes)
    chain = commit_all(job.store, derived, job.base.tree_id, job.title)
    found = chain_from(derived, tree, {job.base.source: chain.trees})
    locked = first_patches(job.locked, len(derived.names))
    wrong = chains.compare(job.pin.name, job.selection.name, locked, found)
    if wrong:
        return Prepared(job.pin, job.base, rows, None, (*notes, *wrong))
    if len(notes) == len(job.notes):
        # A patch with a note is not remembered, so that the note is said every time.
        memory.remember(Prefix(chain.commits, chain.trees, numbers))
    return Prepared(job.pin, job.base, rows, chain, notes)


def _notes(job: Job, series: Series) -> tuple[Finding, ...]:
    """The job's notes, with those of the patches."""
    return (*series.findings, *job.notes[len(job.listing.notes) :])


def _counts(series: Series) -> tuple[Counts, ...]:
    return tuple(counts(patch) for patch in series.patches)


def _states(job: Job, derived: Derived) -> list[str]:
    """What became of each entry."""
    became = iter(derived.outcomes)
    return [next(became).state if taken else "left out" for taken in job.chosen]
