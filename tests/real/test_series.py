"""Every pin's series on its real source: exact, and the same to quilt and to git am."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINS = sorted(path.parent.name for path in (ROOT / "series").glob("*/series"))

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", params=PINS)
def pin(request: pytest.FixtureRequest) -> str:
    """Each pin that has a series."""
    return str(request.param)


def patchkit(*args: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "-C", str(ROOT), *args, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def trees(pin: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A work tree of the base, one of the whole series, and the patched tree's id."""
    at = tmp_path_factory.mktemp("trees")
    whole = patchkit("apply", "--pin", pin, "--all", "--to", str(at / "patched"))
    shutil.copytree(at / "patched", at / "base", symlinks=True)
    git(
        at / "base",
        "checkout",
        "-q",
        "-B",
        "base",
        git(at / "base", "rev-list", "--max-parents=0", "HEAD"),
    )
    return at / "base", at / "patched", str(whole["tree"])


def git(at: Path, *args: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    line = ["git", "-C", str(at), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *args]
    done = subprocess.run(line, capture_output=True, env=env, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def patches(pin: str) -> list[Path]:
    folder = ROOT / "series" / pin
    lines = (folder / "series").read_text().splitlines()
    names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    return [folder / name for name in names]


def test_every_stack_is_as_locked(pin: str) -> None:
    report = patchkit("check", "--pin", pin)
    states = {s["name"]: s["state"] for s in report["pins"][0]["stacks"]}  # type: ignore[index]
    assert "default" in states
    assert set(states.values()) == {"clean"}


def test_the_work_tree_is_the_tree_that_is_named(pin: str, trees: tuple[Path, Path, str]) -> None:
    _, patched, tree = trees
    assert git(patched, "rev-parse", "HEAD^{tree}") == tree
    assert git(patched, "status", "--porcelain") == ""
    assert len(git(patched, "log", "--format=%h").splitlines()) == len(patches(pin)) + 1


def test_quilt_gives_the_same_files(pin: str, trees: tuple[Path, Path, str]) -> None:
    if shutil.which("quilt") is None:
        pytest.skip("quilt is not installed: apt-get install quilt")
    base, _, tree = trees
    env = {**os.environ, "QUILT_PATCHES": str(ROOT / "series" / pin)}
    env |= {"QUILT_PC": ".pc", "QUILTRC": os.devnull}
    done = subprocess.run(
        ["quilt", "push", "-a", "--fuzz=0"], cwd=base, env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    shutil.rmtree(base / ".pc")
    git(base, "add", "-A")
    assert git(base, "write-tree") == tree
    git(base, "reset", "-q", "--hard")
    git(base, "clean", "-qfd")


def test_git_am_gives_the_same_files_authors_and_subjects(
    pin: str, trees: tuple[Path, Path, str]
) -> None:
    base, patched, tree = trees
    git(base, "am", "-q", "--keep-cr", *map(str, patches(pin)))
    assert git(base, "rev-parse", "HEAD^{tree}") == tree
    form = "--format=%s|%an|%ae|%ad"
    count = f"-{len(patches(pin))}"
    assert git(base, "log", count, form) == git(patched, "log", count, form)
