"""A folder of results, written all at once: what a killed command left goes with the next one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from patchkit.engine.model import File
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_empty_folder
from patchkit.files.root import OWN, Root
from patchkit.files.transaction import Recovered, change, recover

_JOURNAL = "writing"


def take_back(folder: str) -> Recovered | None:
    """Remove what a killed `publish` left in `folder`, and the folder where nothing else is in it.

    None where nothing was left. Raises Refused(journal), EnvironmentFault(disk).
    """
    own = os.path.join(folder, OWN)
    if not os.path.isdir(own) or os.path.islink(own):
        return None
    undone = recover(Root(folder), os.path.join(own, _JOURNAL))
    remove_empty_folder(own)
    remove_empty_folder(folder)
    return undone


def publish(folder: str, files: Mapping[str, File], what: str) -> None:
    """Write `files` into `folder`, which is made: all of them or none. what: for a message about
    the command, should it be killed. Raises EnvironmentFault(disk), Refused."""
    own = os.path.join(folder, OWN)
    make_folder(own)
    try:
        change(Root(folder), files, os.path.join(own, _JOURNAL), what=what)
    finally:
        remove_empty_folder(own)
        remove_empty_folder(folder)
