"""Folders of a build's own below the cache, gone when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from patchkit.files.abandoned import abandoned, unfinished, untouched
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_folder

BUILD = "build"
"""Below the cache folder: environments, and the throw-away copies."""


@contextmanager
def scratch(root: str, name: str) -> Iterator[str]:
    """An empty folder of this process below the cache folder `root`.

    Those that killed processes left go, a day later: containers that share a cache do not see each
    other's processes, and a build that runs in one must not lose its folder to another.
    """
    place = os.path.join(root, BUILD, name)
    at = unfinished(place, "", "-")
    for left in abandoned(place, "", "-"):
        if untouched(left):
            remove_folder(left)
    remove_folder(at)
    make_folder(at)
    try:
        yield at
    finally:
        remove_folder(at)
