"""A folder goes at once, and what a killed removal left of it goes with the next one."""

from __future__ import annotations

import os
from pathlib import Path

from patchkit.files.growing import remove_folder


def test_what_a_killed_removal_left_aside_goes_with_the_next_one(tmp_path: Path) -> None:
    for name in ("tree", "tree.123.pk-gone", "tree.4567.pk-gone"):
        (tmp_path / name / "inner").mkdir(parents=True)
    others = ["tree.pk-gone", "tree.12a.pk-gone", "atree.12.pk-gone", "tree.12.pk-gone.txt"]
    for name in others:
        (tmp_path / name).mkdir()
    remove_folder(str(tmp_path / "tree"))
    assert sorted(os.listdir(tmp_path)) == sorted(others)
    (tmp_path / "tree.9.pk-gone").mkdir()
    remove_folder(str(tmp_path / "tree"))  # it is not there; what is left of it goes all the same
    remove_folder(str(tmp_path / "nowhere" / "tree"))
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_links_inside_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("x")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    remove_folder(str(tmp_path / "tree"))
    assert (tmp_path / "outside" / "kept").read_text() == "x"
