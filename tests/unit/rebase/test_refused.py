"""What a rebase cannot go on with is named: where, and what to do; never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Ran, SmallProject
from tests.unit.rebase.ground import release, with_sources


@pytest.fixture
def stopped(locked: SmallProject) -> SmallProject:
    """Stopped at the conflict of `deeper`."""
    project = with_sources(locked)
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 1
    return project


def state(project: SmallProject) -> Path:
    return project.at / ".patchkit" / "rebase.json"


def tree(project: SmallProject) -> Path:
    return project.at / "build" / "rebase-v1.0-v2.0"


def named(done: Ran, code: int, *words: str) -> None:
    assert (done.code, "Traceback" in done.text) == (code, False), done.text
    assert all(word in done.text for word in words), done.text


BEGUN = (
    '{"format": 1, "pin": "v1.0", "onto": "v2.0", "day": "2031-01-31", "stopped": "", "at": "",'
    ' "direct": false, "left": {}, "resolved": {}}'
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 99}',
        '{"format": 1}',
        "[" * 100_000,
        BEGUN.replace('"left": {}', '"left": []'),
        BEGUN.replace('"onto": "v2.0"', '"onto": "../../v2.0"'),
        BEGUN.replace(
            '"resolved": {}',
            '"resolved": {"deeper.patch": {"before": {}, "files": {"../out": null}}}',
        ),
    ],
)
def test_a_state_that_cannot_be_read_is_named_and_abort_is_the_way_out(
    stopped: SmallProject, text: str
) -> None:
    state(stopped).write_text(text)
    named(stopped.run("rebase", "--continue"), 1, "journal", "rebase --abort")
    assert stopped.run("rebase", "--abort").code == 0
    assert not state(stopped).exists()
    assert stopped.run("check", "--pin", "v1.0").code == 0


def test_without_a_release_the_projects_own_pins_are_named(locked: SmallProject) -> None:
    project = with_sources(locked)
    done = project.run("rebase", "--pin", "v1.0")
    named(done, 2, "--onto is needed, and no later pin than v1.0", "patchkit pin NAME --add")
    release(project, "v1.1", {})
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    done = project.run("rebase", "--pin", "v1.0")
    named(done, 2, "(v1.1, v2.0)", "next:     patchkit rebase --pin v1.0 --onto v1.1 --plan")
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v1.1").code == 0
    named(project.run("rebase", "--pin", "v1.0"), 2, "--pin v1.0 --onto v2.0 --plan")


def test_a_pin_without_a_series_names_the_rebase_from_the_nearest(locked: SmallProject) -> None:
    project = with_sources(locked)
    for name in ("v2.0", "v3.0"):
        release(project, name, {})
    done = project.run("diff", "--series", "v1.0", "v3.0")
    named(done, 1, "pin v3.0 has no series", "patchkit rebase --pin v1.0 --onto v3.0 --plan")
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    done = project.run("apply", "--pin", "v3.0")
    named(done, 1, "next:     patchkit rebase --pin v2.0 --onto v3.0 --plan")
    assert project.run("rebase", "--pin", "v2.0", "--onto", "v3.0", "--plan").code == 0


def test_no_folder_but_the_rebases_own_is_removed(stopped: SmallProject, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    state(stopped).write_text(BEGUN.replace('"at": ""', f'"at": "{mine}"'))
    assert stopped.run("rebase", "--abort").code == 0
    assert mine.is_dir()
    assert not tree(stopped).exists()


def test_a_conflict_that_is_not_settled_is_named_with_its_line(stopped: SmallProject) -> None:
    done = stopped.run("rebase", "--continue", "--json")
    (finding,) = json.loads(done.out)["findings"]
    assert (finding["name"], finding["patch"]) == ("conflict", "deeper.patch")
    assert (finding["file"], finding["line"]) == ("engine/plan.py", 3)
    (tree(stopped) / "engine/plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = limit()\n")
    named(stopped.run("rebase", "--continue"), 1, "no-op", "would change nothing", "--drop deeper")


def test_a_lost_work_tree_is_laid_out_anew_and_nothing_is_taken_from_it(
    stopped: SmallProject,
) -> None:
    shutil.rmtree(tree(stopped))
    named(stopped.run("rebase", "--continue"), 1, "is gone: it is laid out anew", "deeper.patch")
    assert "<<<<<<<" in (tree(stopped) / "engine/plan.py").read_text()
    assert not (stopped.at / "series" / "v2.0").exists()


def test_somebody_elses_folder_is_not_taken_for_the_work_tree(locked: SmallProject) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    tree(project).mkdir(parents=True)
    (tree(project) / "mine.txt").write_text("mine\n")
    for _ in range(2):
        done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
        named(done, 1, "target-exists", "rebase-v1.0-v2.0")
        assert (tree(project) / "mine.txt").read_text() == "mine\n"


@pytest.mark.parametrize("text", ["", "{", '{"files": {"../x": null}, "before": {}}', "[]"])
def test_a_remembered_resolution_that_cannot_be_read_is_left_out(
    stopped: SmallProject, text: str
) -> None:
    (tree(stopped) / "engine/plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = 9\n")
    assert stopped.run("rebase", "--continue").code == 0
    (kept,) = (stopped.at / "series" / ".resolutions").iterdir()
    kept.write_text(text)
    shutil.rmtree(stopped.at / "series" / "v2.0")
    named(stopped.run("rebase", "--pin", "v1.0", "--onto", "v2.0"), 1, "deeper.patch waits")
    assert "<<<<<<<" in (tree(stopped) / "engine/plan.py").read_text()


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["--pin", "v1.0", "--onto", "v2.0"], 1, "is under way"),
        (["--pin", "v1.0", "--onto", "v1.0", "--continue"], 1, "is under way"),
        (["--skip", "nothing"], 2, "nothing is not among the patches"),
        (["elsewhere"], 2, "not status"),
    ],
)
def test_a_wrong_call_while_one_waits_is_named(
    stopped: SmallProject, args: list[str], code: int, word: str
) -> None:
    before = state(stopped).read_bytes()
    named(stopped.run("rebase", *args), code, word)
    assert state(stopped).read_bytes() == before


def test_a_pin_whose_release_is_gone_from_pins_toml_is_named(stopped: SmallProject) -> None:
    pins = stopped.at / "pins.toml"
    pins.write_text(pins.read_text().partition('\n[pins."v2.0"]')[0])
    named(stopped.run("rebase", "--continue"), 2, "no pin 'v2.0'")
    assert stopped.run("rebase", "--abort").code == 0
