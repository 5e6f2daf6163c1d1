"""docs/tutorial.md is run as it stands, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_tutorial_is_true() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "tutorial.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_checked_series_takes_at_most_five_commands() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    part = page.partition("## The first patch")[2].partition("## ")[0]
    block = re.findall(r"```console\n(.*?)```", part, re.DOTALL)[0]
    commands = [line for line in block.splitlines() if line.startswith("$ patchkit")]
    assert len(commands) <= 5
    assert commands[-1] == "$ patchkit check"
    assert block.rstrip().endswith("clean")
