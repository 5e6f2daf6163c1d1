"""A folder on disk looked at through a lock: nothing is applied, only touched paths are read."""

from __future__ import annotations

import os

from patchkit.errors import Finding, Refused
from patchkit.files.root import Root
from patchkit.series.lockfile import Blob, Lock
from patchkit.series.state import TreeState, classify


def classify_folder(lock: Lock, stack: str, at: str | os.PathLike[str]) -> TreeState:
    """What the tree at `at` is, seen from `stack`. Raises Refused where the stack is not locked."""
    root = Root(at)

    def lookup(path: str) -> Blob | None:
        file = root.get(path)
        return Blob(file.mode, file.oid) if file is not None else None

    if stack not in lock.stacks:
        raise Refused(
            Finding(
                "lock-stale",
                f"stack {stack} is not in the lock",
                expected="one of " + ", ".join(lock.stacks),
                found=stack,
                next=f"patchkit lock --pin {lock.pin.name}",
            )
        )
    return classify(lock, stack, lookup)
