"""A conflict that waits for a person: what it was laid out of, and what was edited since."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.authoring.taking import take_files
from patchkit.derive.base import Base
from patchkit.errors import Finding, Refused, Where
from patchkit.rebase.conflict import Versions, first_conflict, versions_of
from patchkit.rebase.plan import Row
from patchkit.rebase.resolutions import key
from patchkit.rebase.state import State
from patchkit.rebase.steps import Step
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Waits:
    """The first conflict of a plan. on: what it is laid out of. stands: its work tree is there
    already, laid out of just that. open: the paths that conflict."""

    patch: str
    versions: Versions
    on: str
    stands: bool
    open: tuple[str, ...]


def first(store: Store, steps: Sequence[Step], old: Base, row: Row, state: State) -> Waits | None:
    """The conflict that waits for a person next; None where there is none.

    Raises Refused where that means to throw away what somebody wrote into another one.
    """
    cell = first_conflict(row)
    if cell is None:
        _require_unedited(store, steps, state)
        return None
    versions = versions_of(store, steps, old, row, cell.patch)
    on = basis(store, row, versions)
    stands = (cell.patch, on) == (state.stopped, state.on) and os.path.isdir(state.at)
    if not stands:
        _require_unedited(store, steps, state)
    unsettled = tuple(sorted({cell.moved.get(c.path, c.path) for c in cell.clashes}))
    return Waits(cell.patch, versions, on, stands, unsettled)


def basis(store: Store, row: Row, versions: Versions) -> str:
    """What a conflict is laid out of: the tree below it, and the three versions of its files."""
    tree = store.write_tree(row.base.tree_id, versions.now.changes)
    return f"{tree} {key(versions.three())}"


def require_same(state: State, on: str) -> None:
    """Raises Refused where the conflict that waits was laid out of something else than `on`: what
    is read back would then hold a part of other patches."""
    if state.on in ("", on):
        return
    at = os.path.relpath(state.at)
    raise Refused(
        Finding(
            "series-edited",
            f"what the conflict of {state.stopped} was laid out of has changed since",
            Where(patch=state.stopped, file=at),
            expected=f"the patches of {state.pin} below it, and its own lines, as they were",
            found="another tree below it, or other lines",
            next=f"move {at} away to keep what you wrote; then patchkit rebase --continue lays the "
            "conflict out anew",
        )
    )


def _require_unedited(store: Store, steps: Sequence[Step], state: State) -> None:
    """Raises Refused where the work tree that is to be laid out anew holds what somebody wrote."""
    if not state.stopped or not _edited(store, state):
        return
    at = os.path.relpath(state.at)
    if state.stopped not in {step.name for step in steps}:
        raise Refused(
            Finding(
                "foreign-edit",
                f"{state.stopped} is not in the series any more, and what was written into its "
                "conflict would be gone",
                Where(patch=state.stopped, file=at),
                expected=f"{state.stopped} among the patches of {state.pin}, or no edit there",
                found=f"edits in {at}",
                next=f"move {at} away to keep them, or remove it; then patchkit rebase --continue",
            )
        )
    raise Refused(
        Finding(
            "foreign-edit",
            f"the conflict of {state.stopped} would be laid out anew, and what was edited there "
            "would be gone",
            Where(patch=state.stopped, file=at),
            expected="no edit there yet, or a patch that stands above it",
            found=f"edits in {at}",
            next=f"patchkit rebase --continue, when it is settled; or move {at} away, then the "
            "same command",
        )
    )


def _edited(store: Store, state: State) -> bool:
    """Whether the work tree of `state` is not as it was laid out."""
    if not os.path.isdir(state.at):
        return False
    if not state.laid or not store.has(state.laid):
        return True  # nobody knows
    try:
        return bool(take_files(store, state.at, store.tree(state.laid), add=True).changes)
    except Refused:
        return True
