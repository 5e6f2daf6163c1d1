"""Folders of a build's own below the cache, gone when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from patchkit.files.abandoned import abandoned
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_folder

BUILD = "build"
"""Below the cache folder: environments, and the throw-away copies."""


@contextmanager
def scratch(root: str, name: str) -> Iterator[str]:
    """An empty folder of this process below the cache folder `root`."""
    place = os.path.join(root, BUILD, name)
    at = f"{place}-{os.getpid()}"
    for left in (*abandoned(place, "", "-"), at):
        remove_folder(left)
    make_folder(at)
    try:
        yield at
    finally:
        remove_folder(at)
