"""A build's own folder in the cache, and those that killed builds left."""

from __future__ import annotations

import os
import time
from pathlib import Path

from patchkit.build.scratch import BUILD, scratch

NOBODY = 4_194_304 + 7
"""Above the largest process id of Linux."""


def left_behind(root: Path, hours: float) -> Path:
    folder = root / BUILD / f"empty-{NOBODY + int(hours)}"
    folder.mkdir(parents=True)
    then = time.time() - hours * 3600
    os.utime(folder, (then, then))
    return folder


def test_what_a_killed_build_left_goes_a_day_later(tmp_path: Path) -> None:
    old = left_behind(tmp_path, 25)
    with scratch(str(tmp_path), "empty") as at:
        assert os.listdir(at) == []
        assert not old.exists()
    assert not os.path.exists(at)


def test_a_build_in_another_container_keeps_its_folder(tmp_path: Path) -> None:
    """Its process is not seen from here, and its folder is young."""
    theirs = left_behind(tmp_path, 2)
    with scratch(str(tmp_path), "empty"):
        assert theirs.is_dir()
