"""A tree in a folder that a script may change, and what it did there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.engine.model import EXECUTABLE, File, Overlay, Tree
from patchkit.files.atomic import make_folder
from patchkit.files.root import Root
from patchkit.store.tree import StoreTree

LONG_AGO = 946_684_800
"""2000-01-01, in seconds: a file with another time was written since."""
LEFT_BEHIND = (".orig", ".bak", ".pyc", ".pyo", "~", ".swp")
"""How files end that editors, patch and Python leave."""


@dataclass(frozen=True)
class Found:
    """What differs from a tree. idle: files that were written and are as they were. junk: what
    editors, patch and Python leave."""

    changes: Mapping[str, File | None]
    idle: tuple[str, ...]
    junk: tuple[str, ...]


def lay_out(tree: StoreTree, at: str) -> None:
    """Write the tree into the new folder `at`."""
    make_folder(at)
    root = Root(at)
    paths = [listed.path for listed in tree.walk()]
    tree.prefetch(paths)
    with root.held():
        for path in paths:
            file = tree.get(path)
            if file is not None:
                root.put(path, file, sync=False)


def age(at: str) -> None:
    """Give every file the same old time."""
    for folder, _, names in os.walk(at):
        for name in names:
            path = os.path.join(folder, name)
            os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def looked_at(at: str, before: Tree) -> Found:
    """What was done in the folder since `age`; `before` is what it held then."""
    root = Root(at)
    changes: dict[str, File | None] = {}
    idle: list[str] = []
    junk: list[str] = []
    there = set()
    for path in sorted(root.walk()):
        there.add(path)
        old = before.get(path)
        stat = os.lstat(os.path.join(at, path))
        written = stat.st_mtime != LONG_AGO
        if (
            old is not None
            and not written
            and _executable(stat.st_mode) == (old.mode == EXECUTABLE)
        ):
            continue
        if old is None and (path.endswith(LEFT_BEHIND) or "__pycache__/" in path):
            junk.append(path)
            continue
        file = root.get(path)
        if file is not None and old is not None and (file.oid, file.mode) == (old.oid, old.mode):
            idle += [path] if written else []
        else:
            changes[path] = file
    changes.update((path, None) for path in _paths(before) if path not in there)
    return Found(changes, tuple(idle), tuple(junk))


def _executable(mode: int) -> bool:
    return mode & 0o170000 == 0o100000 and bool(mode & 0o100)


def _paths(tree: Tree) -> list[str]:
    if isinstance(tree, Overlay):
        known = {*_paths(tree.below), *tree.changes}
        return sorted(path for path in known if tree.get(path) is not None)
    assert isinstance(tree, StoreTree)
    return [listed.path for listed in tree.walk()]
