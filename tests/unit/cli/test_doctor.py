"""doctor: each fault of a project is named, with the command that mends it, and that mends it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Ran, SmallProject
from tests.unit.rebase.ground import with_sources


@pytest.fixture
def sound(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """A project that nothing is wrong with."""
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A. Author")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "a@example.invalid")
    project = with_sources(project)
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited("wider", "engine/lanes.py", "return 9\n", "return 90\n", "wide")
    (project.at / ".gitattributes").write_text("*.patch -text\n")
    assert project.run("lock").code == 0
    return project


def found(ran: Ran) -> list[dict[str, object]]:
    findings: list[dict[str, object]] = json.loads(ran.out)["findings"]
    return findings


def names(ran: Ran) -> list[str]:
    return [str(f["name"]) for f in found(ran)]


def test_nothing_is_wrong_with_a_sound_project(sound: SmallProject) -> None:
    done = sound.run("doctor")
    assert (done.code, done.err) == (0, "")
    assert "nothing is wrong" in done.out
    assert f"{sound.at}, series for v1.0" in done.out


def test_outside_a_project_the_machine_alone_is_looked_at(
    sound: SmallProject, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    done = sound.run("-C", str(tmp_path / "empty"), "doctor", "--json")
    assert done.code == 0
    assert names(done) == ["not-a-project"]


def test_a_missing_lock(sound: SmallProject) -> None:
    (sound.series / "series.lock").unlink()
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (1, ["lock-stale"])
    command = str(found(done)[0]["next"]).split()
    assert sound.run(*command[1:]).code == 0
    assert sound.run("doctor").code == 0


def test_an_edited_patch_and_a_new_stack_make_the_lock_stale(sound: SmallProject) -> None:
    patch = sound.series / "deeper.patch"
    patch.write_text(patch.read_text().replace("Why.", "Because."))
    with open(sound.at / "pins.toml", "a") as pins:
        pins.write("[stacks.other]\nguards = []\n")
    done = sound.run("doctor", "--json")
    assert done.code == 1
    assert names(done) == ["patch-edited", "lock-stale"]
    assert sound.run("lock").code == 0
    assert sound.run("doctor").code == 0


def test_a_patch_that_no_line_names(sound: SmallProject) -> None:
    (sound.series / "stray.patch").write_text((sound.series / "deeper.patch").read_text())
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (0, ["unused"])
    assert "import series/v1.0/stray.patch" in str(found(done)[0]["next"])


def test_a_patch_that_cannot_be_read(sound: SmallProject) -> None:
    (sound.series / "deeper.patch").write_text("no diff\n")
    done = sound.run("doctor", "--json")
    assert done.code == 1
    assert "no-diff" in names(done)


@pytest.mark.parametrize("carried", [False, True])
def test_proofs_that_are_missing_beside_others(sound: SmallProject, carried: bool) -> None:
    """A patch that was carried inherits a proof only where what it came from has one."""
    if carried:
        wider = sound.series / "wider.patch"
        wider.write_bytes(
            wider.read_bytes().replace(b"Forwarded:", b"Rebased-From: v0/w\nForwarded:")
        )
    (sound.series / "proofs").mkdir()
    (sound.series / "proofs" / "test_deeper.py").write_text("def test_x(): pass\n")
    assert sound.run("lock").code == 0
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (0, ["proof-missing"])
    assert "wider.patch" in str(found(done)[0]["message"])
    assert "test_wider.py" in str(found(done)[0]["next"])


def test_a_work_tree_of_yesterday(sound: SmallProject) -> None:
    assert sound.run("apply", "--pin", "v1.0").code == 0
    assert sound.run("doctor").code == 0
    assert sound.run("drop", "deeper", "--pin", "v1.0").code == 0
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (0, ["not-built-from-this"])
    command = str(found(done)[0]["next"]).split()
    assert sound.run(*command[1:]).code == 0
    assert names(sound.run("doctor", "--json")) == []


def test_a_damaged_record_of_a_work_tree(sound: SmallProject) -> None:
    assert sound.run("apply", "--pin", "v1.0").code == 0
    (state,) = sound.at.glob("build/*/.git/patchkit/state.json")
    state.write_text("{")
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (1, ["journal"])


def test_git_attributes_and_an_author(sound: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
    (sound.at / ".gitattributes").unlink()
    monkeypatch.delenv("GIT_AUTHOR_NAME")
    monkeypatch.setenv("HOME", str(sound.at))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(sound.at))
    monkeypatch.delenv("GIT_AUTHOR_EMAIL")
    monkeypatch.delenv("EMAIL", raising=False)
    done = sound.run("doctor", "--json")
    assert (done.code, names(done)) == (0, ["line-endings", "git"])


def test_without_git_it_says_how_to_get_one(
    sound: SmallProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    done = sound.run("doctor")
    assert done.code == 1
    assert "git is not installed" in done.err
    assert "apt-get install git" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_folder_that_cannot_be_written(
    sound: SmallProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ro").mkdir(mode=0o555)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "ro"))
    done = sound.run("doctor")
    assert done.code == 1
    assert "cannot be written" in done.err
