"""Trees on disk for proofs: only what the package needs, made once an id, bytecode shared.

A tree is made by hard links from the base tree's folder, so that a series of thirty patches
costs thirty times the changed files. Python's bytecode lies under one prefix for each
interpreter, in which every tree has a folder of its own and the interpreter's packages stand once.
A new tree's bytecode is linked from the base's, since files keep their times.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
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

    def bytecode(self, tree: str, python: str, interpreter: str) -> str:
        """The bytecode prefix for `python` (a short id: `interpreter`), ready for `tree`."""
        prefix = os.path.join(self.at, "pyc", interpreter)
        with _ONE_AT_A_TIME:
            old = prefix + self.folder(self.base.tree_id)
            if not os.path.isdir(old):
                make_folder(old)
                self._compile(python, prefix)
            new = prefix + self.folder(tree)
            if not os.path.isdir(new):
                link_folder(old, new, self._stale(old, tree))
        return prefix

    def _stale(self, old: str, tree: str) -> Iterator[str]:
        """Bytecode of the base, below `old`, whose source the tree has not. Python compares only
        length and second: a file changed at once, by as many bytes, would go unseen."""
        base, new = self.folder(self.base.tree_id), self.folder(tree)
        for folder, _, names in os.walk(old):
            inner = os.path.relpath(folder, old)
            for name in names:
                source = os.path.join(inner, name.partition(".")[0] + ".py")
                if not _same(os.path.join(base, source), os.path.join(new, source)):
                    yield os.path.normpath(os.path.join(inner, name))

    def _compile(self, python: str, prefix: str) -> None:
        """Compile the base's package once; a file that does not compile is left to its importer."""
        package = os.path.join(self.folder(self.base.tree_id), self.known.root, self.known.package)
        if not self.known.package or not os.path.isdir(package):
            return
        env = {"PATH": os.environ.get("PATH", ""), "PYTHONPYCACHEPREFIX": prefix}
        line = [python, "-m", "compileall", "-qq", package]
        subprocess.run(line, env=env, capture_output=True, check=False)

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


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False
