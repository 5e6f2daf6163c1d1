"""When a run on one tree also speaks of another: nothing that it took from the tree differs.

What a run took is watched (inside/pk_watch.py): files opened, modules asked for in vain, folders
listed. So a patch at the end of a series does not void what the other proofs showed. A mere
question whether a file is there is not seen; `prove --fresh` runs everything.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass

from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree
from patchkit.upstreams import Known

KEPT = 40
"""Runs of one proof that are looked through."""


@dataclass(frozen=True)
class Taken:
    """What a run took from its tree. beyond: it handed the tree to another program, so that what
    it took is not known."""

    used: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    beyond: bool = True

    def dumps(self) -> str:
        """As text; `loads` reads it."""
        return json.dumps(
            [sorted(self.used), sorted(self.missing), sorted(self.listed), self.beyond]
        )

    @classmethod
    def loads(cls, text: str) -> Taken:
        used, missing, listed, beyond = json.loads(text)
        return cls(frozenset(used), frozenset(missing), frozenset(listed), bool(beyond))


def parse_watched(text: str) -> Taken:
    """What the watcher wrote down."""
    by_kind: dict[str, set[str]] = {"used": set(), "missing": set(), "listed": set()}
    beyond = False
    for line in text.splitlines():
        kind, _, what = line.partition(" ")
        if kind in by_kind:
            by_kind[kind].add(what)
        else:
            beyond = True
    used, missing, listed = (frozenset(by_kind[k]) for k in ("used", "missing", "listed"))
    return Taken(used, missing, listed, beyond)


def speaks_of(
    taken: Taken,
    known: Known,
    changed: Iterable[str],
    moved: Iterable[str],
    folders: Container[str] = (),
) -> bool:
    """Whether a run that took this would go the same on a tree with these differences.

    changed: every path that differs. moved: those of them that are in one tree only. folders:
    those that both trees have, so that a list of what holds them stays the same.
    """
    if taken.beyond or any(path in taken.used for path in changed):
        return False
    lead = f"{known.root}/" if known.root else ""
    used_modules = {path.removeprefix(lead) for path in taken.used}
    for path in moved:
        if any(_shows(place, path, folders) for place in taken.listed):
            return False
        module = path.removeprefix(lead).rpartition(".")[0].removesuffix("/__init__")
        if any(f"{module}{end}" in used_modules for end in (".py", "/__init__.py")):
            return False  # it would stand before the one that was used
        names = module.replace("/", ".").split(".")
        if any(".".join(names[: n + 1]) in taken.missing for n in range(len(names))):
            return False
    return True


def _shows(place: str, path: str, folders: Container[str]) -> bool:
    """Whether a list of the place (a folder, or a pattern of glob's) differs by that path."""
    lead = "" if place == "." else f"{place}/"
    if "*" in place:
        return path.startswith(place.partition("*")[0])
    if not path.startswith(lead):
        return False
    child, _, deeper = path.removeprefix(lead).partition("/")
    return not deeper or f"{lead}{child}" not in folders


class _Both:
    """The folders that two trees have, as far as they are asked for."""

    def __init__(self, one: StoreTree, two: StoreTree) -> None:
        self._one, self._two = one, two

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._one.has_folder(path) and self._two.has_folder(path)


def alike(store: Store, known: Known, group: str, tree: str) -> str | None:
    """A tree on which a run of this group was kept that speaks of `tree`, too."""
    new = store.tree(tree)
    for other, result in reversed(list(store.results.read(group).items())[-KEPT:]):
        if other == tree:
            return other
        taken = Taken.loads(result.text)
        if taken.beyond or not store.has(other):
            continue
        old = store.tree(other)
        if any(old.listed(path) != new.listed(path) for path in taken.used):
            continue  # most runs on other releases: no need to compare the whole
        differing = dict(old.differing(new))
        moved = [path for path, alone in differing.items() if alone]
        if speaks_of(taken, known, differing, moved, _Both(old, new)):
            return other
    return None
