"""What is in the project's repository: nothing that .gitignore says is made on each machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_that_is_ignored_is_tracked() -> None:
    # A tracked link in place of the environment takes the environment of whoever pulls it.
    line = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        pytest.skip("no clone")
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_a_link_in_place_of_the_environment_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    (tmp_path / ".venv").symlink_to("elsewhere")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    line = ["git", "check-ignore", "-q", ".venv"]
    assert subprocess.run(line, cwd=tmp_path, check=False).returncode == 0
