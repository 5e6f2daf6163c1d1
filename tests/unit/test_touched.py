"""`make test-touched` runs a real test again when something that it reads has changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REAL = sorted((ROOT / "tests" / "real").glob("test_*.py"))


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "ci"))
    import touched as module

    return module


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_whatever_a_real_test_reads_is_in_its_key(path: Path, touched: object) -> None:
    text = path.read_text()
    read = {
        "/".join(re.findall(r'"([^"]+)"', m)) for m in re.findall(r'ROOT((?: / "[^"]+")+)', text)
    }
    shared = touched.SHARED  # type: ignore[attr-defined]
    assert [r for r in read if not any(f"{r}/".startswith(f"{s}/") for s in shared)] == []
    imported = re.findall(r"from (tests\.[\w.]+) import", text)
    keyed = {str(p.relative_to(ROOT)) for p in touched.taken(path)}  # type: ignore[attr-defined]
    assert {f"{name.replace('.', '/')}.py" for name in imported} - {"tests/conftest.py"} <= keyed


def test_a_clone_of_somebody_else_is_read(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import touched; print(len(touched.tracked('ci')))"],
        cwd=ROOT / "ci",
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_an_old_python_is_named_before_anything_is_made(tmp_path: Path) -> None:
    old = "import sys; sys.version_info = (3, 10, 12)"
    (tmp_path / "old").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{old}\n$2"\n')
    (tmp_path / "old").chmod(0o755)
    done = subprocess.run(
        ["make", f"PYTHON={tmp_path}/old", f"VENV={tmp_path}/venv", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "is 3.10: make PYTHON=... with 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()
