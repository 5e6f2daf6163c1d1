"""What Python compiled from a module: it must go when the module changes.

Python looks at the source's time and size, but not where the bytecode says that nobody needs to
(unchecked hashes, as some images have them), nor where both happen to be equal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from patchkit.engine.model import path_text
from patchkit.files.root import Root
from patchkit.target.dist_info import on_disk

CACHE = "__pycache__"


def stale(root: Root, paths: Iterable[str]) -> list[str]:
    """The bytecode files of changed modules below `root`, whatever interpreter made them."""
    found: list[str] = []
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        stem, dot, end = name.rpartition(".")
        if not dot or end not in ("py", "pyw"):
            continue
        cache = f"{folder}/{CACHE}" if folder else CACHE
        try:
            names = os.listdir(on_disk(root.at, cache))
        except OSError:
            names = []
        for each in sorted(names):
            if each.startswith(f"{stem}.") and each.endswith((".pyc", ".pyo")):
                found.append(f"{cache}/{path_text(os.fsencode(each))}")
        beside = f"{folder}/{stem}.pyc" if folder else f"{stem}.pyc"
        if root.stat(beside) is not None:
            found.append(beside)
    return found


def drop(root: Root, paths: Iterable[str]) -> list[str]:
    """Remove the bytecode of changed modules; the removed paths. Raises EnvironmentFault(disk)."""
    found = stale(root, paths)
    for path in found:
        root.remove(path)
    return found
