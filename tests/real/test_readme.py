"""The README's tour prints what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.real
def test_the_tour_is_true() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "tour.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
