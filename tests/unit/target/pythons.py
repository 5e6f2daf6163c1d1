"""Interpreters of other releases, where this machine has them."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest


@cache
def interpreter(version: str) -> str | None:
    """A command for Python `version` ("3.10"): on PATH, or one of pyenv's."""
    found = [shutil.which(f"python{version}") or ""]
    found += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")))
    for program in filter(None, found):
        try:
            run = subprocess.run([program, "-c", "pass"], capture_output=True, check=False)
        except OSError:
            continue
        if run.returncode == 0:
            return program
    return None


def needed(version: str) -> str:
    """As `interpreter`; the test is skipped where there is none."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    return found
