"""`--skip` leaves a patch out for now, `--drop` for good: the series file says which."""

from __future__ import annotations

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import TO, release, with_sources


@pytest.fixture
def project(locked: SmallProject) -> SmallProject:
    found = with_sources(locked)
    release(found, "v2.0", {"engine/lanes.py": ("def lane_0", "# a\ndef lane_0")})
    return found


def lines(project: SmallProject, pin: str = "v2.0") -> list[str]:
    return (project.at / "series" / pin / "series").read_text().splitlines()[1:]


@pytest.mark.parametrize("why", ["", "not yet"])
def test_what_was_skipped_comes_with_new_and_its_reason_goes(
    project: SmallProject, why: str
) -> None:
    assert project.run(*TO, "--skip", "wider", *(["--why", why] if why else [])).code == 0
    said = f"# wider.patch: not on v2.0: skipped{': ' if why else ''}{why}"
    assert lines(project) == ["deeper.patch", said, "later.patch"]
    assert "which lacks wider.patch" in project.run(*TO).err
    done = project.run(*TO, "--new")
    assert done.code == 0, done.text
    assert lines(project) == ["deeper.patch", "wider.patch #+wide", "later.patch"]
    assert project.run("check", "--pin", "v2.0").code == 0


def test_it_comes_from_a_release_further_back_too(project: SmallProject) -> None:
    release(project, "v3.0", {}, after="v2.0")
    assert project.run(*TO, "--skip", "wider").code == 0
    assert project.run("rebase", "--pin", "v2.0", "--onto", "v3.0").code == 0
    assert "# wider.patch: not on v2.0: skipped" in lines(project, "v3.0")
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v3.0", "--new")
    assert done.code == 0, done.text
    assert lines(project, "v3.0") == ["deeper.patch", "wider.patch #+wide", "later.patch"]


def test_what_was_dropped_stays_away(project: SmallProject) -> None:
    assert project.run(*TO, "--drop", "wider", "--why", "skipped by us").code == 0
    assert "# wider.patch: not on v2.0: skipped by us" in lines(project)
    before = lines(project)
    assert "says why not" in project.run(*TO, "--new").out
    assert lines(project) == before


def test_one_that_was_skipped_and_is_dropped_then_is_dropped(project: SmallProject) -> None:
    assert project.run(*TO, "--skip", "wider").code == 0
    assert project.run(*TO, "--new", "--drop", "wider", "--why", "no use").code == 0
    assert lines(project) == [
        "deeper.patch",
        "# wider.patch: not on v2.0: no use",
        "later.patch",
    ]
    assert "says why not" in project.run(*TO, "--new").out


def test_without_a_rebase_there_is_nothing_to_leave_out_of(project: SmallProject) -> None:
    for words in (["--skip", "wider"], ["--drop", "wider"], ["--continue"]):
        done = project.run("rebase", *words)
        assert (done.code, "no rebase is under way" in done.err) == (1, True), done.text
    assert project.run("rebase", "--abort").out == "no rebase is under way\n"
