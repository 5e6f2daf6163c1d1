"""What a series gave before, remembered for each of its prefixes.

A key is made of the base tree and of all that decides what the patches up to there do: their
bytes, names and options, and whether each is taken. What stands under it is only a claim. Its
trees are compared with those that the lock promises, its marks with the lock's blob ids, and the
commit it ends in is read, hashed, and must have that tree. So what is remembered saves work and
never decides what a tree is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from patchkit.series.lockfile import Chain as LockedChain
from patchkit.series.quilt import Entry
from patchkit.store.commits import Commit, commit_bytes
from patchkit.store.pack import object_id
from patchkit.store.repo import Store
from patchkit.store.results import Result

RULES = 1
"""Raised whenever the same patches make other commits (author, date, message)."""

_LEFT_OUT = "-"

Counts = tuple[int, int, int]
"""Files, added lines and removed lines of a patch."""


@dataclass(frozen=True)
class Promise:
    """What the lock says of a selection on one base. trees: the base's id and that after each
    patch. marks: patch -> digest of what it does to each path, by blob ids."""

    trees: Sequence[str]
    marks: Mapping[str, str]


@dataclass(frozen=True)
class Prefix:
    """The first entries of a series, applied before and as the lock promises.

    commits and trees: of the patches taken, in order, the base's first. counts: one an entry,
    left-out ones too.
    """

    commits: tuple[str, ...]
    trees: tuple[str, ...]
    counts: tuple[Counts, ...]

    def __len__(self) -> int:
        """How many entries these are."""
        return len(self.counts)


@dataclass(frozen=True)
class Memory:
    """What is known of one selection on one base, and where more is put.

    base: commit and tree that all starts from. chosen: for each entry, whether it is taken.
    promise: None where the lock does not speak of this base: nothing is remembered then.
    """

    store: Store
    entries: Sequence[Entry]
    chosen: Sequence[bool]
    base: tuple[str, str]
    keys: Sequence[str]
    promise: Promise | None

    def recall(self) -> Prefix | None:
        """The longest prefix that is remembered, intact, and as promised; None without one."""
        if self.promise is None or not self.keys:
            return None
        longest = self.store.longest(self.keys, self.keys[0])
        if longest is None:
            return None
        until = longest[0] + 1
        known = dict(self.store.results.longest(self.keys[:until], self.keys[0]))
        ids = [self.base]
        counts: list[Counts] = []
        for at in range(until):
            if at not in known:
                return None
            mark, files, added, removed = known[at].text.split(" ")
            counts.append((int(files), int(added), int(removed)))
            commit, tree = known[at].ids
            if self.chosen[at]:
                ids.append((commit, tree))
            wanted = self.promise.marks[self.entries[at].patch] if self.chosen[at] else _LEFT_OUT
            if mark != wanted or tree != self.promise.trees[len(ids) - 1]:
                return None
        commits, trees = zip(*ids, strict=True)
        return Prefix(commits, trees, tuple(counts))

    def remember(self, prefix: Prefix, known: int = 0) -> None:
        """Record what every prefix of the series gave, once all was found as locked.

        known: how many entries are recorded already.
        """
        if self.promise is None or not self.keys:
            return
        results: dict[str, Result] = {}
        taken = 0
        for at, (entry, chosen) in enumerate(zip(self.entries, self.chosen, strict=True)):
            taken += chosen
            if at >= known:
                mark = self.promise.marks[entry.patch] if chosen else _LEFT_OUT
                ids = (prefix.commits[taken], prefix.trees[taken])
                text = f"{mark} {' '.join(map(str, prefix.counts[at]))}"
                results[self.keys[at]] = Result(ids, text)
        self.store.remember_all(self.keys[0], results)


def memory_of(
    store: Store,
    entries: Sequence[Entry],
    digests: Mapping[str, str],
    chosen: Sequence[bool],
    locked: LockedChain,
    base: tuple[str, str],
    title: str,
) -> Memory:
    """What is known of a selection. digests: sha256 of every patch. base: name of the source and
    id of its tree. title: message of the base's commit."""
    source, tree = base
    names = [entry.patch for entry, taken in zip(entries, chosen, strict=True) if taken]
    first = object_id("commit", commit_bytes(tree, None, Commit({}, message=title))).hex()
    keys = _keys(first, entries, digests, chosen)
    return Memory(
        store, entries, chosen, (first, tree), keys, _promise(locked, names, source, tree)
    )


def marks_of(chain: LockedChain) -> dict[str, str]:
    """Of each patch the digest of the paths that it changes, with their ids before and after."""
    told: dict[str, list[str]] = {name: [] for name in chain.patches}
    for path, steps in chain.paths.items():
        for before, after in pairwise(steps):
            told[after.patch].append(f"{before.blob} {after.blob} {path}\n")
    return {name: _digest("".join(sorted(rows))).hexdigest()[:32] for name, rows in told.items()}


def _promise(
    locked: LockedChain, names: Sequence[str], source: str, base_tree: str
) -> Promise | None:
    """What `locked` promises of the patches `names` on this base; None where it speaks of other
    patches (a stack's guards were changed since), or of no such base."""
    if locked.patches[: len(names)] != tuple(names):
        return None
    chains = [locked.trees.get(source, ()), *locked.trees.values()]
    trees = next((ids for ids in chains if ids and ids[0] == base_tree), None)
    return Promise(trees, marks_of(locked)) if trees is not None else None


def _keys(
    base: str, entries: Sequence[Entry], digests: Mapping[str, str], chosen: Sequence[bool]
) -> list[str]:
    """The key of each prefix, the first entry alone first. base: the commit that all starts from,
    which holds the base's tree."""
    running = _digest(f"prefix {RULES}\n{base}\n")
    keys = []
    for entry, taken in zip(entries, chosen, strict=True):
        options = f"{entry.strip} {entry.reverse:d} {taken:d}"
        running.update(_bytes(f"{options} {digests[entry.patch]} {entry.patch}\n"))
        keys.append(running.hexdigest())
    return keys


def _digest(text: str) -> hashlib._Hash:
    return hashlib.sha256(_bytes(text), usedforsecurity=False)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
