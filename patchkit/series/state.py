"""What the lock says of a tree, without applying anything: pristine, patched, up to k, foreign.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from patchkit.series.lockfile import BASE, Blob, Lock, Step

Lookup = Callable[[str], "Blob | str | None"]
"""What stands at a path: mode and blob id, the blob id alone where modes mean nothing (an
installed package), or None where there is no file."""

PRISTINE = "pristine"
PATCHED = "patched"
UPTO = "upto"
MIXED = "mixed"
FOREIGN = "foreign"


@dataclass(frozen=True)
class PathState:
    """One path. kind: pristine, patched, upto or foreign.

    counts: after how many patches of the chain the path looks as found (empty: never). patch: the
    last patch of the chain whose effect is found, "" for none. base, patched: what the path is
    before and after the whole chain. elsewhere: the patch of the whole series that leaves the
    path as found, where the chain itself never does.
    """

    path: str
    kind: str
    counts: tuple[int, ...]
    patch: str
    found: Blob | str | None
    base: Blob | None
    patched: Blob | None
    elsewhere: str = ""


@dataclass(frozen=True)
class TreeState:
    """A whole tree.

    kind: pristine, patched, upto (the first `count` patches, the last of them `patch`), mixed
    (every path is known, but not from one and the same count: partly applied) or foreign (some
    path is neither base nor ours). counts: every number of patches that explains all paths.
    """

    kind: str
    count: int
    patch: str
    counts: tuple[int, ...]
    paths: tuple[PathState, ...]

    def of_kind(self, kind: str) -> list[str]:
        """The paths in that state."""
        return [p.path for p in self.paths if p.kind == kind]


def classify(
    lock: Lock,
    stack: str | None,
    lookup: Lookup,
    only: Callable[[str], bool] | None = None,
) -> TreeState:
    """Say of a tree what it is, seen from the chain of `stack` (None: the whole series).

    lookup: what stands at a path. only: which paths the target can hold at all (an installed
    package has no tests/); the others are left out. Paths that just other stacks touch are looked
    at too: in this chain they stay as in the base. KeyError where the stack is not locked.
    """
    chain = lock.chain(stack)
    last = len(chain.patches)
    rank = {patch: number for number, patch in enumerate((BASE, *chain.patches))}
    common = (1 << (last + 1)) - 1
    states = []
    for path in sorted({*chain.paths, *lock.series.paths}):
        if only is not None and not only(path):
            continue
        steps = chain.paths.get(path) or lock.series.paths[path][:1]
        state, mask = _path_state(lock, rank, steps, path, lookup(path))
        states.append(state)
        common &= mask
    counts = _bits(common)
    kind, count = _verdict(counts, last, any(s.kind == FOREIGN for s in states))
    patch = chain.patches[count - 1] if count > 0 else BASE
    return TreeState(kind, count, patch, counts, tuple(states))


def stacks_of(lock: Lock, lookup: Lookup, only: Callable[[str], bool] | None = None) -> list[str]:
    """The locked stacks that the tree is the patched state of, sorted; "" is the whole series."""
    found = []
    for name in ("", *sorted(lock.stacks)):
        if classify(lock, name or None, lookup, only).kind == PATCHED:
            found.append(name)
    return found


def _verdict(counts: tuple[int, ...], last: int, foreign: bool) -> tuple[str, int]:
    if foreign:
        return FOREIGN, -1
    if not counts:
        return MIXED, -1
    if last in counts:
        # With nothing to look at (no patch, or no path the target can hold) patched is pristine.
        return (PATCHED if last else PRISTINE), last
    if 0 in counts:
        return PRISTINE, 0
    return UPTO, counts[-1]


def _path_state(
    lock: Lock,
    rank: Mapping[str, int],
    steps: Sequence[Step],
    path: str,
    found: Blob | str | None,
) -> tuple[PathState, int]:
    """The state of one path, and as bits the numbers of patches after which it looks as found."""
    last = len(rank) - 1
    mask = 0
    matched: Step | None = None
    for index, step in enumerate(steps):
        if _same(step.blob, found):
            end = rank[steps[index + 1].patch] if index + 1 < len(steps) else last + 1
            mask |= (1 << end) - (1 << rank[step.patch])
            matched = step
    elsewhere = ""
    if matched is None:
        kind = FOREIGN
        whole = lock.series.paths.get(path, ())
        elsewhere = next((s.patch for s in whole if _same(s.blob, found)), "")
    elif mask >> last & 1:
        kind = PATCHED if len(steps) > 1 else PRISTINE
    elif mask & 1:
        kind = PRISTINE
    else:
        kind = UPTO
    return (
        PathState(
            path,
            kind,
            _bits(mask),
            matched.patch if matched else BASE,
            found,
            steps[0].blob,
            steps[-1].blob,
            elsewhere,
        ),
        mask,
    )


def _same(blob: Blob | None, found: Blob | str | None) -> bool:
    if blob is None or found is None:
        return blob is None and found is None
    return blob.oid == found if isinstance(found, str) else blob == found


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(n for n in range(mask.bit_length()) if mask >> n & 1)
