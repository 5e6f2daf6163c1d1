"""A work tree is made whole, brought up to date in place, and never over somebody's edit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SmallProject


def git(at: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(at), *args], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def apply(project: SmallProject, *args: str, code: int = 0) -> str:
    done = project.run("apply", "--pin", "v1.0", "--source", str(project.base), *args)
    assert done.code == code, done.text
    return done.text


def test_one_commit_a_patch_tagged_and_clean(locked: SmallProject) -> None:
    apply(locked, "--all")
    at = locked.at / "build" / "engine-v1.0"
    subjects = git(at, "log", "--format=%s|%an|%ad", "--date=raw").splitlines()
    assert subjects == [
        "later|A. Author|1796040000 +0000",
        "wider|A. Author|1796040000 +0000",
        "deeper|A. Author|1796040000 +0000",
        "engine v1.0|patchkit|0 +0000",
    ]
    tree = git(at, "rev-parse", "HEAD^{tree}")
    assert git(at, "describe", "--tags") == f"v1.0+pk{tree[:12]}"
    assert git(at, "status", "--porcelain") == ""
    assert git(at, "fsck", "--strict") == ""
    assert "Patch-Name: later.patch" in git(at, "log", "-1", "--format=%B")


def test_only_changed_files_are_written_again(locked: SmallProject) -> None:
    apply(locked, "--all")
    at = locked.at / "build" / "engine-v1.0"
    old = {p: os.stat(at / p) for p in ("setup.py", "engine/plan.py", "engine/lanes.py")}
    text = apply(locked, "--upto", "deeper")
    assert "updated in place, 1 file" in text
    new = {p: os.stat(at / p) for p in old}
    assert {p for p in old if old[p].st_ino != new[p].st_ino} == {"engine/lanes.py"}
    assert git(at, "status", "--porcelain") == ""
    assert "already as wanted" in apply(locked, "--upto", "deeper")


def test_a_foreign_edit_is_refused_with_its_path(locked: SmallProject) -> None:
    apply(locked)
    at = locked.at / "build" / "engine-v1.0"
    (at / "setup.py").write_text("mine\n")
    text = apply(locked, "--all", code=1)
    assert "foreign-edit" in text
    assert "setup.py" in text
    assert (at / "setup.py").read_text() == "mine\n"
    assert "return 20" not in (at / "engine" / "lanes.py").read_text()


def test_untracked_files_are_no_reason_to_refuse(locked: SmallProject) -> None:
    apply(locked)
    at = locked.at / "build" / "engine-v1.0"
    (at / "notes.txt").write_text("mine\n")
    apply(locked, "--all")
    assert (at / "notes.txt").read_text() == "mine\n"


def test_a_file_put_back_to_the_base_is_not_foreign(locked: SmallProject) -> None:
    apply(locked, "--all")
    at = locked.at / "build" / "engine-v1.0"
    (at / "engine" / "plan.py").write_bytes((locked.base / "engine" / "plan.py").read_bytes())
    apply(locked, "--all")
    assert "DEPTH = 3" in (at / "engine" / "plan.py").read_text()


def test_somebodys_folder_is_refused(locked: SmallProject, tmp_path: Path) -> None:
    at = tmp_path / "theirs"
    at.mkdir()
    (at / "x").write_text("")
    assert "target-exists" in apply(locked, "--to", str(at), code=1)
    assert sorted(p.name for p in at.iterdir()) == ["x"]


def test_check_writes_nothing(locked: SmallProject) -> None:
    apply(locked, "--check")
    assert not (locked.at / "build").exists()


def test_commits_are_the_same_for_another_user_day_and_config(
    locked: SmallProject, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname=Eve\n[apply]\nwhitespace=fix\n[commit]\ngpgSign=true\n[core]\nautocrlf=true\n"
        f"hooksPath={home}\n[init]\ntemplateDir={home}\n"
    )
    hook = home / "reference-transaction"
    hook.write_text("#!/bin/sh\ntouch $HOME/ran\nexit 1\n")
    hook.chmod(0o755)
    apply(locked, "--all", "--to", str(tmp_path / "a"))
    env = {
        "HOME": str(home),
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
        "GIT_DIR": "/nonexistent",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
        "USER": "eve",
        "PATCHKIT_CACHE": str(tmp_path / "cache2"),
    }
    old = {k: os.environ.get(k) for k in env}
    mask = os.umask(0o077)
    os.environ.update(env)
    try:
        apply(locked, "--all", "--to", str(tmp_path / "b"))
    finally:
        os.umask(mask)
        for key, value in old.items():
            os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)
    assert git(tmp_path / "a", "rev-parse", "HEAD") == git(tmp_path / "b", "rev-parse", "HEAD")
    assert not (home / "ran").exists()
    assert (tmp_path / "b" / "setup.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "b" / "engine").stat().st_mode & 0o777 == 0o755


def test_inside_another_repository_the_tree_is_written(locked: SmallProject) -> None:
    subprocess.run(["git", "init", "-q", str(locked.at)], check=True)
    apply(locked)
    at = locked.at / "build" / "engine-v1.0"
    assert "DEPTH = 3" in (at / "engine" / "plan.py").read_text()


def test_killed_after_its_record_was_written_it_is_taken_back_with_it(
    locked: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are rolled back to what the old record says: a new one would call them foreign."""
    apply(locked, "--all")
    at = locked.at / "build" / "engine-v1.0"
    killed = (
        "import sys; from patchkit.files import transaction\n"
        "transaction._drop = lambda at: sys.exit(9)\n"
        "from patchkit.cli.main import main; main()"
    )
    line = ("apply", "--pin", "v1.0", "--source", str(locked.base), "--upto", "deeper")
    done = subprocess.run([sys.executable, "-c", killed, *line], cwd=locked.at, check=False)
    assert done.returncode == 9
    assert "return 90" not in (at / "engine" / "lanes.py").read_text()
    text = apply(locked, "--all")
    assert "was undone first" in text
    assert "return 90" in (at / "engine" / "lanes.py").read_text()
    assert git(at, "status", "--porcelain") == ""
