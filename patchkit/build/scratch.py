"""Folders of a build's own below the cache, gone when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_folder

BUILD = "build"
"""Below the cache folder: environments, and the throw-away copies."""


@contextmanager
def scratch(root: str, name: str) -> Iterator[str]:
    """An empty folder of this process below the cache folder `root`."""
    at = os.path.join(root, BUILD, f"{name}-{os.getpid()}")
    remove_folder(at)
    make_folder(at)
    try:
        yield at
    finally:
        remove_folder(at)
