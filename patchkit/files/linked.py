"""Folders made quickly out of others by hard links. What is linked must not be written in place."""

from __future__ import annotations

import os
from collections.abc import Iterable

from patchkit.files.root import disk_fault


def link_folder(source: str, dest: str, skip: Iterable[str] = ()) -> None:
    """Make the folder `dest` with every regular file of `source` as a hard link.

    skip: paths below `source` that are left out. Links are made again as links. Raises
    EnvironmentFault(disk).
    """
    left_out = frozenset(os.path.join(source, path) for path in skip)
    try:
        for folder, _, names in os.walk(source):
            inner = os.path.join(dest, os.path.relpath(folder, source))
            os.makedirs(inner, exist_ok=True)
            for name in names:
                old, new = os.path.join(folder, name), os.path.join(inner, name)
                if old not in left_out and not os.path.lexists(new):
                    os.link(old, new, follow_symlinks=False)
    except OSError as error:
        raise disk_fault(error, dest, "make") from error
