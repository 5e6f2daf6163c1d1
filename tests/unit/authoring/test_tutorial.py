"""The pages of docs/ are run as they stand, and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


PAGES = [
    "tutorial",
    "patch-an-image",
    "carry-a-pr",
    "coming-from",
    "run-the-matrix",
    "build-a-wheel",
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_true(page: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "tutorial.py"), page],
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
