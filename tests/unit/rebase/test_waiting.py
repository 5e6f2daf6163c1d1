"""A conflict that waits holds what somebody writes: nothing else that is done takes it away, and
nothing of other patches gets into it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources

SETTLED = "STEPS = 4\nWIDTH = 8\nDEPTH = limit() + 1\n"


@pytest.fixture
def waits(locked: SmallProject) -> SmallProject:
    """`deeper` waits, the second of four; below it stands `later`, above it two more."""
    project = with_sources(locked)
    project.edited("last", "setup.py", "setup()\n", "setup()\n# last\n", "wide")
    assert project.run("lock", "--pin", "v1.0").code == 0
    assert project.run("move", "later", "--first").code == 0
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
    assert done.code == 1
    assert "deeper.patch waits" in done.out
    return project


def plan_of(project: SmallProject) -> Path:
    return project.at / "build" / "rebase-v1.0-v2.0" / "engine" / "plan.py"


def test_what_is_written_stays_when_a_patch_above_is_left_out(waits: SmallProject) -> None:
    plan_of(waits).write_text(SETTLED)
    done = waits.run("rebase", "--skip", "last")
    assert done.code == 1
    assert "deeper.patch waits in build/rebase-v1.0-v2.0, as it was" in done.out
    assert plan_of(waits).read_text() == SETTLED
    done = waits.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert "+DEPTH = limit() + 1\n" in (waits.at / "series/v2.0/deeper.patch").read_text()


@pytest.mark.parametrize("option", ["--skip", "--drop"])
def test_it_is_not_laid_out_anew_over_what_is_written(waits: SmallProject, option: str) -> None:
    plan_of(waits).write_text(SETTLED)
    state = (waits.at / ".patchkit" / "rebase.json").read_bytes()
    done = waits.run("rebase", option, "later", "--json")
    (finding,) = [f for f in json.loads(done.out)["findings"] if f["name"] == "foreign-edit"]
    assert (done.code, finding["patch"]) == (1, "deeper.patch")
    assert plan_of(waits).read_text() == SETTLED
    assert (waits.at / ".patchkit" / "rebase.json").read_bytes() == state
    # The way out that is named.
    (waits.at / "build" / "rebase-v1.0-v2.0").rename(waits.at / "mine")
    done = waits.run("rebase", option, "later")
    assert "deeper.patch waits in build/rebase-v1.0-v2.0: engine/plan.py" in done.out
    assert "<<<<<<< v2.0" in plan_of(waits).read_text()


def test_it_is_laid_out_anew_where_nothing_was_written(waits: SmallProject) -> None:
    lanes = plan_of(waits).parent / "lanes.py"
    assert "return 90\n" in lanes.read_text()
    done = waits.run("rebase", "--skip", "later")
    assert "deeper.patch waits in build/rebase-v1.0-v2.0: engine/plan.py" in done.out
    assert "return 90\n" not in lanes.read_text()


def test_a_new_file_is_an_edit_too(waits: SmallProject) -> None:
    mine = plan_of(waits).parent / "mine.py"
    mine.write_text("mine\n")
    assert "foreign-edit" in waits.run("rebase", "--skip", "later").err
    assert mine.read_text() == "mine\n"


def test_another_patch_that_goes_meanwhile_does_not_get_into_it(waits: SmallProject) -> None:
    plan_of(waits).write_text(SETTLED)
    assert waits.run("drop", "later", "--pin", "v1.0").code == 0
    done = waits.run("rebase", "--continue")
    assert done.code == 1
    assert "series-edited" in done.err
    assert "move build/rebase-v1.0-v2.0 away" in done.err
    assert plan_of(waits).read_text() == SETTLED
    (waits.at / "build" / "rebase-v1.0-v2.0").rename(waits.at / "mine")
    assert waits.run("rebase", "--continue").code == 1
    plan_of(waits).write_text(SETTLED)
    assert waits.run("rebase", "--continue").code == 0
    patch = (waits.at / "series/v2.0/deeper.patch").read_text()
    assert ("engine/plan.py" in patch, "engine/lanes.py" in patch) == (True, False)


def test_a_settled_patch_that_is_edited_meanwhile_is_asked_about_again(
    waits: SmallProject,
) -> None:
    # A second conflict, so that the rebase goes on after the first is settled.
    setup = waits.at / "sources" / "v2.0" / "setup.py"
    assert waits.run("rebase", "--abort").code == 0
    setup.write_text(setup.read_text() + "# end\n")
    assert waits.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 1
    plan_of(waits).write_text(SETTLED)
    assert "last.patch waits" in waits.run("rebase", "--continue").out
    patch = waits.series / "deeper.patch"
    patch.write_text(patch.read_text().replace("+DEPTH = 3", "+DEPTH = 7"))
    assert waits.run("lock", "--pin", "v1.0").code == 0
    done = waits.run("rebase", "--skip", "last")
    assert done.code == 1
    assert "deeper.patch waits" in done.out
    assert "DEPTH = 7" in plan_of(waits).read_text()
