"""docs/new-release.md is run as it stands, and prints what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_true() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "tutorial.py"), "new-release"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
