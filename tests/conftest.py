"""Shared by all tests: a cache of their own, a small project, and the command in-process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# In CI the examples are the same each time: a red run there is a fault of the change. At a desk
# every run tries new ones.
settings.register_profile(
    "patchkit",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("patchkit")

BASE = {
    "engine/__init__.py": '"""A small engine."""\n',
    "engine/lanes.py": "".join(f"def lane_{i}():\n    return {i}\n\n\n" for i in range(12)),
    "engine/plan.py": "STEPS = 4\nWIDTH = 8\nDEPTH = 2\n",
    "setup.py": "from setuptools import setup\nsetup()\n",
}


@pytest.fixture(autouse=True)
def own_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test but a `real` one sees the user's cache."""
    if request.node.get_closest_marker("real") is None and "tmp_path" in request.fixturenames:
        cache = request.getfixturevalue("tmp_path") / "the-cache"
        monkeypatch.setenv("PATCHKIT_CACHE", str(cache))


@dataclass
class Ran:
    """What a run of the command gave."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything it printed."""
        return self.out + self.err


@dataclass
class SmallProject:
    """A project of kind plain: `at` holds pins.toml, `base` is the source folder."""

    at: Path
    base: Path

    @property
    def series(self) -> Path:
        """The series folder of its one pin."""
        return self.at / "series" / "v1.0"

    def run(self, *args: str) -> Ran:
        """Run the command in a process of its own, in the project's folder."""
        done = subprocess.run(
            [sys.executable, "-m", "patchkit", *args],
            cwd=self.at,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def edited(self, name: str, path: str, old: str, new: str, guard: str | None = None) -> Path:
        """Add a patch to the series' end that replaces `old` by `new` on top of what is there."""
        tree = self.at / "work"
        if not (tree / ".git").is_dir():
            subprocess.run(["cp", "-r", str(self.base), str(tree)], check=True)
            for line in ("init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm base"):
                subprocess.run(["git", *line.split()], cwd=tree, check=True)
        file = tree / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        file.write_text(text.replace(old, new))
        diff = subprocess.run(
            ["git", "diff", "--full-index"], cwd=tree, capture_output=True, check=True
        ).stdout
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", name],
            cwd=tree,
            check=True,
        )
        header = (
            "From: A. Author <a@example.invalid>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\n"
            f"Subject: {name}\nOrigin: vendor\nForwarded: no\nLast-Update: 2026-11-30\n\n"
            "Why.\n---\n"
        )
        self.series.mkdir(parents=True, exist_ok=True)
        patch = self.series / f"{name}.patch"
        patch.write_bytes(header.encode() + diff)
        with open(self.series / "series", "a") as file_list:
            file_list.write(f"{name}.patch{f' #+{guard}' if guard else ''}\n")
        return patch


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    """A project with two pins' worth of nothing: no patch yet."""
    at = tmp_path / "project"
    base = tmp_path / "source"
    for name, text in BASE.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    at.mkdir()
    (at / "pins.toml").write_text(
        '[upstreams.engine]\nkind = "plain"\npackage = "engine"\n\n'
        f'[pins."v1.0"]\nupstream = "engine"\ncommit = "{"1" * 40}"\n\n'
        '[stacks.default]\nguards = []\n[stacks.wide]\nguards = ["wide"]\n'
    )
    return SmallProject(at, base)


@pytest.fixture
def locked(project: SmallProject) -> SmallProject:
    """The project with three patches, one of them guarded, and its lock."""
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited(
        "wider", "engine/lanes.py", "    return 2\n", "    return 20\n    # wide\n", "wide"
    )
    project.edited("later", "engine/lanes.py", "    return 9\n", "    return 90\n")
    done = project.run("lock", "--source", str(project.base))
    assert done.code == 0, done.text
    return project
