"""Trees on disk for proofs: only what the package needs, made once an id, bytecode shared.

A tree is made by hard links from the base tree's folder, so that a series of thirty patches
costs thirty times the changed files. Python's bytecode lies under a prefix of its own for each
tree and interpreter; a new tree's is linked from the base's, since files keep their times.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from patchkit.files.atomic import make_folder, move_folder
from patchkit.files.growing import remove_folder
from patchkit.files.linked import link_folder
from patchkit.files.lock import locked
from patchkit.files.root import Root
from patchkit.source import Base
from patchkit.store.repo import Store
from patchkit.upstreams import Known

_ONE_AT_A_TIME = threading.Lock()


@dataclass
class Trees:
    """Folders of trees below the cache folder. known: which paths a proof needs."""

    store: Store
    base: Base
    known: Known

    @property
    def at(self) -> str:
        """Where all of them stand."""
        return os.path.join(self.store.root, "prove")

    def folder(self, tree: str) -> str:
        """The folder of the tree `tree`, made where missing."""
        at = os.path.join(self.at, "trees", tree)
        make_folder(os.path.dirname(at))
        with locked(f"{at}.lock", wait=600):
            if not os.path.isdir(at):
                new = f"{at}.new"
                remove_folder(new)
                if tree == self.base.tree_id:
                    self._write(new)
                else:
                    self._link(new, tree)
                move_folder(new, at)
        return at

    def bytecode(self, tree: str, interpreter: str) -> str:
        """The bytecode prefix of a tree and an interpreter (a short id)."""
        at = os.path.join(self.at, "bytecode", interpreter, tree)
        base = os.path.join(self.at, "bytecode", interpreter, self.base.tree_id)
        with _ONE_AT_A_TIME:
            if os.path.isdir(at):
                return at
            make_folder(at)
            old = base + os.path.join(self.at, "trees", self.base.tree_id)
            if tree != self.base.tree_id and os.path.isdir(old):
                link_folder(old, at + os.path.join(self.at, "trees", tree))
            return at

    def _needed(self, path: str) -> bool:
        return not self.known.package or not self.known.outside_package(path)

    def _write(self, at: str) -> None:
        make_folder(at)
        root = Root(at)
        tree = self.base.tree(self.store)
        wanted = [f for f in tree.walk() if self._needed(f.path)]
        tree.prefetch(f.path for f in wanted)
        for listed in wanted:
            file = tree.get(listed.path)
            if file is not None:
                root.put(listed.path, file, sync=False)
        for path, file in self.base.generated.items():
            root.put(path, file, sync=False)

    def _link(self, at: str, tree: str) -> None:
        old = {f.path: f for f in self.base.tree(self.store).walk()}
        wanted = self.store.tree(tree)
        new = {f.path: f for f in wanted.walk()}
        changed = [p for p in {*old, *new} if self._needed(p) and old.get(p) != new.get(p)]
        link_folder(self.folder(self.base.tree_id), at, changed)
        root = Root(at)
        wanted.prefetch(p for p in changed if p in new)
        for path in changed:
            file = wanted.get(path)
            if file is not None:
                root.put(path, file, sync=False)
