"""A rebase that is killed at any write and run again ends as one that was not."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import git, release, with_sources
from tests.unit.target import killing
from tests.unit.target.killing import stopped_at

DAY = "2031-02-03"
START = ("rebase", "--pin", "v1.0", "--onto", "v2.0")
TREE = Path("build", "rebase-v1.0-v2.0")
STATE = Path(".patchkit", "rebase.json")
SAMPLE = 4
"""Writes at which the fast suite kills; the slow one takes them all."""

Files = dict[str, bytes]


def half_written(name: str, args: tuple[Any, ...]) -> None:
    """As a power cut: what was being written is half there."""
    killing.half_written(name, args)
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Ground:
    """The project, a copy of it to begin from, and commands in a child of ours."""

    at: Path
    saved: Path

    def keep(self) -> None:
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.at, self.saved, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.at)
        shutil.copytree(self.saved, self.at, symlinks=True)

    def run(self, *args: str, kill: int = 1 << 30) -> tuple[int, int]:
        """Exit code (minus the signal where killed) and number of writes."""
        count = self.at.parent / "count"
        count.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            self._child(args, kill, count)
        _, status = os.waitpid(child, 0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return code, int(count.read_text()) if count.exists() else 0

    def _child(self, args: tuple[str, ...], kill: int, count: Path) -> None:
        code = 99
        try:
            out = os.open(self.at.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            os.chdir(self.at)
            sys.argv = ["patchkit", *args]
            from patchkit.cli.main import main

            with stopped_at(kill, half_written) as seen:
                try:
                    main()
                except SystemExit as ended:
                    code = ended.code if isinstance(ended.code, int) else 1
            count.write_text(str(len(seen)))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def files(self) -> Files:
        """Every file but git's own and what a killed removal left; of a repository its HEAD."""
        found: Files = {}
        for folder, folders, names in os.walk(self.at):
            here = Path(folder)
            if ".git" in folders:
                found[f"{here.relative_to(self.at)} HEAD"] = git(here, "rev-parse", "HEAD").encode()
            folders[:] = [f for f in folders if f != ".git" and not f.endswith(".pk-gone")]
            for name in names:
                if not name.endswith(".pk-lock"):
                    path = here / name
                    found[str(path.relative_to(self.at))] = path.read_bytes()
        return found


@pytest.fixture
def ground(locked: SmallProject, tmp_path: Path) -> Ground:
    """One patch that conflicts on v2.0 and two that only move."""
    project = with_sources(locked)
    shutil.rmtree(project.at / "work")
    release(
        project,
        "v2.0",
        {
            "engine/plan.py": ("DEPTH = 2", "DEPTH = limit()"),
            "engine/lanes.py": ("def lane_0", "# a\n# b\ndef lane_0"),
        },
    )
    return Ground(project.at, tmp_path / "saved")


def clean(ground: Ground) -> None:
    """Without the conflict, too."""
    plan = ground.at / "sources" / "v2.0" / "engine" / "plan.py"
    plan.write_text(plan.read_text().replace("limit()", "2"))


def settled(ground: Ground) -> None:
    """Stopped at the conflict, and the conflict settled."""
    assert ground.run(*START, "--date", DAY)[0] == 1
    plan = ground.at / TREE / "engine" / "plan.py"
    plan.write_text("STEPS = 4\nWIDTH = 8\nDEPTH = limit() + 1\n")


def stopped(ground: Ground) -> None:
    """Stopped at the conflict."""
    assert ground.run(*START, "--date", DAY)[0] == 1


def nothing(ground: Ground) -> None:
    """As it is."""


Scene = tuple[Callable[[Ground], None], tuple[str, ...], tuple[str, ...], int]
SCENES: dict[str, Scene] = {
    "all-of-it": (clean, (*START, "--date", DAY), START, 0),
    "up-to-a-conflict": (nothing, (*START, "--date", DAY), START, 1),
    "continue": (settled, ("rebase", "--continue"), ("rebase", "--continue"), 0),
    "skip": (stopped, ("rebase", "--skip", "deeper"), ("rebase", "--skip", "deeper"), 0),
    "abort": (stopped, ("rebase", "--abort"), ("rebase", "--abort"), 0),
}


def at_every_write(ground: Ground, scene: Scene, sample: int) -> None:
    setup, command, again, code = scene
    setup(ground)
    ground.keep()
    began = (ground.at / STATE).exists()
    assert ground.run(*command)[0] == code  # the cache is warm from here on
    wanted = ground.files()
    ground.restore()
    _, writes = ground.run(*command)
    assert ground.files() == wanted
    for number in range(0, writes, max(1, writes // sample)):
        ground.restore()
        done, _ = ground.run(*command, kill=number)
        assert done == -signal.SIGKILL, number
        # The day of the first run is in the state: it need not be said again.
        known = began or (ground.at / STATE).exists()
        done, _ = ground.run(*(again if known else command))
        assert ground.files() == wanted, f"killed at {number} of {writes}"
        # Killed after its last step it is done: then there is nothing to do again.
        assert done == code or number == writes - 1 or not (ground.at / STATE).exists(), number


@pytest.mark.parametrize("name", sorted(SCENES))
def test_killed_and_run_again_it_ends_as_if_it_had_not_been(ground: Ground, name: str) -> None:
    at_every_write(ground, SCENES[name], SAMPLE)
    assert "Traceback" not in (ground.at.parent / "said").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENES))
def test_at_every_single_write(ground: Ground, name: str) -> None:
    at_every_write(ground, SCENES[name], 1 << 30)


def test_the_day_is_the_one_of_the_first_run(ground: Ground) -> None:
    settled(ground)
    assert ground.run("rebase", "--continue", "--date", "2031-03-04")[0] == 2
    assert ground.run("rebase", "--continue")[0] == 0
    for name in ("deeper", "later", "wider"):
        text = (ground.at / "series" / "v2.0" / f"{name}.patch").read_text()
        assert f"Last-Update: {DAY}\n" in text
