"""`rebase --new` that is killed at any write and run again ends as one that was not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase import test_killed as killed
from tests.unit.rebase.test_killed import DAY, SAMPLE, START, Ground, at_every_write, clean

ground = killed.ground


def extended(ground: Ground) -> None:
    """The series was carried, and got a patch more since."""
    clean(ground)
    assert ground.run(*START, "--date", DAY)[0] == 0
    project = SmallProject(ground.at, ground.at / "sources" / "v1.0")
    project.edited("more", "engine/__init__.py", 'engine."""\n', 'engine."""\nMORE = 1\n')
    shutil.rmtree(Path(ground.at, "work"))
    assert ground.run("lock", "--pin", "v1.0")[0] == 0


SCENE = (extended, (*START, "--new", "--date", "2031-04-05"), START, 0)


def test_killed_and_run_again_it_ends_as_if_it_had_not_been(ground: Ground) -> None:
    at_every_write(ground, SCENE, SAMPLE)
    assert "Traceback" not in (ground.at.parent / "said").read_text()


@pytest.mark.slow
def test_at_every_single_write(ground: Ground) -> None:
    at_every_write(ground, SCENE, 1 << 30)
