"""A class that upstream deleted, its twin left: the tools that people use patch the twin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import QUIET, git, release, with_sources

TWIN = """\
    def lanes(self):
        one = 1
        two = 2
        three = 3
        width = 4
        four = 4
        five = 5
        six = 6
        return width
"""
CLASSES = f"class Fast:\n{TWIN}\n\nclass Slow:\n{TWIN}"
LEFT = f"# 1\n# 2\n# 3\nclass Slow:\n{TWIN}"
PATCHED = CLASSES.replace("width = 4", "width = 40", 1)
WRONG = LEFT.replace("width = 4", "width = 40")
FILE = "engine/twins.py"


@pytest.fixture
def twins(locked: SmallProject, tmp_path: Path) -> tuple[SmallProject, Path]:
    """A project whose one patch widens Fast, v2.0 without Fast; and the patch as a mail."""
    project = with_sources(locked)
    (project.base / FILE).write_text(CLASSES)
    edit = tmp_path / "edit"
    shutil.copytree(project.base, edit)
    git(edit, "init", "-q", "-b", "main")
    git(edit, "add", "-A")
    git(edit, "commit", "-qm", "base")
    (edit / FILE).write_text(PATCHED)
    git(edit, "commit", "-qam", "Widen the fast lanes")
    mail = tmp_path / "widen.patch"
    mail.write_text(git(edit, "format-patch", "--stdout", "-1") + "\n")
    shutil.copy(mail, project.series / "widen.patch")
    (project.series / "series").write_text("widen.patch\n")
    assert project.run("lock").code == 0
    at = release(project, "v2.0", {})
    (at / FILE).write_text(LEFT)
    return project, mail


def upstream(project: SmallProject, at: Path) -> Path:
    """v2.0 as a repository whose history holds v1.0, so that three-way merges have their base."""
    shutil.copytree(project.base, at)
    git(at, "init", "-q", "-b", "main")
    git(at, "add", "-A")
    git(at, "commit", "-qm", "v1.0")
    git(at, "branch", "ours")
    (at / FILE).write_text(LEFT)
    git(at, "commit", "-qam", "v2.0: Fast is gone")
    return at


def test_patch_without_fuzz_puts_it_in_the_wrong_class(
    twins: tuple[SmallProject, Path], tmp_path: Path
) -> None:
    project, mail = twins
    at = upstream(project, tmp_path / "theirs")
    done = subprocess.run(
        ["patch", "-p1", "-F0", "-s", "-i", str(mail)], cwd=at, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (at / FILE).read_text() == WRONG


def test_git_am_three_way_puts_it_in_the_wrong_class(
    twins: tuple[SmallProject, Path], tmp_path: Path
) -> None:
    project, mail = twins
    at = upstream(project, tmp_path / "theirs")
    done = subprocess.run(
        ["git", "am", "-q", "-3", str(mail)], cwd=at, env=QUIET, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert (at / FILE).read_text() == WRONG


def test_git_rebase_apply_puts_it_in_the_wrong_class(
    twins: tuple[SmallProject, Path], tmp_path: Path
) -> None:
    project, _ = twins
    at = upstream(project, tmp_path / "theirs")
    git(at, "checkout", "-q", "ours")
    (at / FILE).write_text(PATCHED)
    git(at, "commit", "-qam", "Widen the fast lanes")
    done = subprocess.run(
        ["git", "rebase", "-q", "--apply", "main"],
        cwd=at,
        env=QUIET,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert (at / FILE).read_text() == WRONG


def test_rebase_says_conflict_and_writes_no_series(twins: tuple[SmallProject, Path]) -> None:
    project, _ = twins
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0", "--json")
    assert done.code == 1
    body = json.loads(done.out)
    (row,) = body["plan"][-1]["patches"]
    assert (row["text"], row["conflicts"]) == ("conflict", [FILE])
    (finding,) = [f for f in body["findings"] if not f["note"]]
    assert (finding["name"], finding["patch"], finding["hunk"]) == ("conflict", "widen.patch", 1)
    assert not os.path.exists(project.at / "series" / "v2.0")
    # In the tree for a person the twin is untouched outside the markers.
    text = (project.at / "build" / "rebase-v1.0-v2.0" / FILE).read_text()
    assert text.endswith(f"class Slow:\n{TWIN}")
    assert "width = 40" in text.partition(">>>>>>>")[0]


def test_check_of_the_old_patch_on_the_new_release_is_no_success(
    twins: tuple[SmallProject, Path],
) -> None:
    project, mail = twins
    (project.at / "series" / "v2.0").mkdir()
    shutil.copy(mail, project.at / "series" / "v2.0" / "widen.patch")
    (project.at / "series" / "v2.0" / "series").write_text("widen.patch\n")
    done = project.run("lock", "--pin", "v2.0")
    assert done.code == 1
    assert "error: offset" in done.err
