"""Wheels of the real v0.30.0: the same bytes twice, installed, known as built, uninstalled."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.engine.model import blob_id

ROOT = Path(__file__).resolve().parents[2]
PIN = "v0.30.0"
MEMORY = 400 << 10
"""KiB that a build may take at its peak."""
CPU = 15.0
"""Seconds of CPU of an overlay, the download and the import of the source not counted."""

pytestmark = [pytest.mark.real, pytest.mark.slow]


def patchkit(*args: str, umask: int = 0o022, code: int = 0, **env: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "-C", str(ROOT), *args, "--json"],
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
        env={**os.environ, **env},
    )
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def cells() -> dict[str, list[str]]:
    """The matrix as a workflow reads it: a cell's id -> the words of its command."""
    line = [sys.executable, "-m", "patchkit", "-C", str(ROOT), "matrix", "--format", "github"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return {
        cell["id"]: shlex.split(cell["command"])[1:] for cell in json.loads(done.stdout)["include"]
    }


@pytest.fixture(scope="module")
def overlay(
    cells: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, object]:
    """The default stack's overlay wheel, by the command of its cell."""
    command = cells[f"{PIN}-default-overlay-x86_64-cu130"]
    return patchkit(*command, "-o", str(tmp_path_factory.mktemp("first")))


def test_an_overlay_is_the_same_from_another_folder_umask_and_time_zone(
    overlay: dict[str, object], tmp_path: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = str(tmp_path / "a" / "longer" / "folder")
    line = ("build", "--pin", PIN, "--arch", "x86_64", "-o", out)
    again = patchkit(*line, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert again["sha256"] == overlay["sha256"]
    assert again["content"] == overlay["content"]
    for key in ("provenance", "sbom"):
        assert Path(str(again[key])).read_bytes() == Path(str(overlay[key])).read_bytes()
    assert after.ru_maxrss < MEMORY
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < CPU


def test_it_installs_is_what_is_locked_and_leaves_nothing(
    overlay: dict[str, object], tmp_path: Path
) -> None:
    from installer.sources import WheelFile

    wheel = Path(str(overlay["path"]))
    with WheelFile.open(wheel) as source:
        source.validate_record()
    at = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(at)], check=True)
    python = at / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    site = next((at / "lib").glob("python3*/site-packages"))
    before = sorted(site.iterdir())
    line = ["install", "-q", "--no-deps", "--no-index", "--no-compile", "--no-cache-dir"]
    subprocess.run([*pip, *line, str(wheel)], check=True)
    lock = json.loads((ROOT / "series" / PIN / "series.lock").read_bytes())
    steps = {p: s[-1][1] for p, s in lock["stacks"]["default"]["paths"].items()}
    for path, blob in steps.items():
        if path.startswith("vllm/"):
            assert blob_id((site / path).read_bytes()) == blob.split()[1], path
    code = "import importlib.metadata as m; print(m.version('vllm'))"
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == overlay["version"]
    assert patchkit("check", "--pin", PIN, "--installed", "--site", str(site))["ok"] is True
    subprocess.run([*pip, "uninstall", "-q", "-y", "vllm"], check=True)
    assert sorted(site.iterdir()) == before


def test_another_release_is_refused_and_nothing_is_written(
    overlay: dict[str, object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    base = ("--base-wheel", str(overlay["path"]), "--sha256", str(overlay["sha256"]))
    # A patched wheel is no base: its files are not those of the pin.
    found = patchkit("build", "--pin", PIN, *base, "-o", str(out), code=1)
    assert found["findings"][-1]["name"] == "pin-mismatch"  # type: ignore[index]
    assert not out.exists()


def test_an_empty_wheel_is_the_same_twice(cells: dict[str, list[str]], tmp_path: Path) -> None:
    line = ("build", "--pin", PIN, "--how", "empty", "-o")
    first = patchkit(*cells[f"{PIN}-default-empty-x86_64-py3.11"], "-o", str(tmp_path / "a"))
    second = patchkit(*line, str(tmp_path / "b" / "c"), umask=0o077, TZ="Asia/Tokyo", LC_ALL="C")
    assert first["sha256"] == second["sha256"]
    assert str(first["version"]).startswith("0.30.0+empty.pk")
    lock = json.loads((ROOT / "series" / PIN / "series.lock").read_bytes())
    inside = {p for p in lock["stacks"]["default"]["paths"] if p.startswith("vllm/")}
    assert set(first["changed"]) == inside  # type: ignore[call-overload]
