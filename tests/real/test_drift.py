"""What drift says of the v0.30.0 series on every other release is what a person wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.real


def test_every_cell_is_as_expected_and_cheap() -> None:
    line = [sys.executable, str(ROOT / "ci" / "drift.py"), "--expected"]
    subprocess.run(line, capture_output=True, check=False)  # the sources are in the cache now
    child = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said
    assert " cells expected, 0 not as found" in said
    assert used.ru_utime + used.ru_stime < 10  # seconds of CPU, its child's too
    assert used.ru_maxrss < 300 << 10  # KiB
