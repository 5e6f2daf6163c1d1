"""Loose patches in a folder: only what is ours is touched, and no option is ignored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import SmallProject

PATCH = b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    at = tmp_path / "tree"
    at.mkdir()
    (at / "x").write_bytes(b"a\nb\nc\n")
    (tmp_path / "x.patch").write_bytes(PATCH)
    return at


@pytest.mark.parametrize("kind", ["link", "file"])
def test_somebody_elses_patchkit_entry_is_left(
    project: SmallProject, tree: Path, tmp_path: Path, kind: str
) -> None:
    own = tree / ".patchkit"
    own.symlink_to("../out") if kind == "link" else own.write_text("theirs")
    done = project.run("apply", str(tmp_path / "x.patch"), "--to", str(tree))
    assert done.code == 1
    assert "symlink-in-path" in done.err
    assert sorted(os.listdir(tree)) == [".patchkit", "x"]
    assert (tree / "x").read_bytes() == b"a\nb\nc\n"


@pytest.mark.parametrize(
    "args", [["--tree-only"], ["--source", "."], ["--offline"], ["--upto", "x"]]
)
def test_an_option_of_pins_is_refused(
    project: SmallProject, tree: Path, tmp_path: Path, args: list[str]
) -> None:
    done = project.run("apply", str(tmp_path / "x.patch"), "--to", str(tree), *args)
    assert done.code == 2
    assert sorted(os.listdir(tree)) == ["x"]


def test_an_empty_folder_name_is_no_default(locked: SmallProject) -> None:
    done = locked.run("apply", "--pin", "v1.0", "--source", str(locked.base), "--to", "")
    assert done.code == 2
    assert not (locked.at / "build").exists()
