"""Where a wheel goes: nothing is there that is not whole, and nothing is fetched in vain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.build import beside
from patchkit.build.ask import Asked
from patchkit.build.run import build
from patchkit.derive.base import open_bases
from patchkit.derive.project import find
from patchkit.errors import EnvironmentFault, Finding, UsageFault
from tests.conftest import SmallProject
from tests.unit.build import wheels


@pytest.fixture
def given(locked: SmallProject, tmp_path: Path) -> Asked:
    path, digest = wheels.wheel(tmp_path / "official", locked.base)
    return Asked("v1.0", None, "overlay", str(path), digest, source=str(locked.base))


def made(project: SmallProject, given: Asked, out: Path) -> list[str]:
    with open_bases(find(project.at), offline=True) as bases:
        build(bases.project, bases, given, str(out))
    return sorted(os.listdir(out))


@pytest.mark.parametrize("below", ["", "below", "below/further"])
def test_a_file_is_no_place(locked: SmallProject, given: Asked, tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("mine\n")
    with pytest.raises(UsageFault, match="goes into a folder"):
        made(locked, given, file / below if below else file)
    assert file.read_text() == "mine\n"


def test_a_folder_that_may_not_be_written_is_said_first(
    locked: SmallProject, given: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside.os, "access", lambda path, mode: False)
    with pytest.raises(EnvironmentFault, match="may not be written"):
        made(locked, given, tmp_path / "o")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("error", [EnvironmentFault(Finding("disk", "full")), KeyboardInterrupt()])
def test_no_wheel_stands_without_its_papers(
    locked: SmallProject,
    given: Asked,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    real, written = beside.write_file, []

    def failing(path: str, data: bytes) -> None:
        written.append(path)
        if len(written) == 2:
            raise error
        real(path, data)

    monkeypatch.setattr(beside, "write_file", failing)
    with pytest.raises(type(error)):
        made(locked, given, tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_what_stood_there_before_stays(
    locked: SmallProject, given: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(locked, given, tmp_path / "o")
    assert len(first) == 3

    def full(path: str, data: bytes) -> None:
        raise EnvironmentFault(Finding("disk", "full"))

    monkeypatch.setattr(beside, "write_file", full)
    with pytest.raises(EnvironmentFault):
        made(locked, given, tmp_path / "o")
    assert sorted(os.listdir(tmp_path / "o")) == first


def test_an_empty_name_and_an_out_that_is_not_used_are_refused(locked: SmallProject) -> None:
    for more in (["-o", ""], ["--verify", "x.whl", "-o", "o"]):
        done = locked.run("build", "--pin", "v1.0", *more)
        assert done.code == 2, done.text
        assert "--out" in done.err


@pytest.mark.parametrize(
    "option",
    ["--pin", "--stack", "--how", "--base-wheel", "--sha256", "--arch", "--python", "--cuda-archs"],
)
def test_an_option_with_nothing_behind_it_does_not_build_the_default(
    locked: SmallProject, option: str
) -> None:
    done = locked.run("build", "--source", str(locked.base), option, "")
    assert done.code == 2, done.text
    assert f"{option} is given, and empty" in done.err
    assert not (locked.at / "build").exists()


def test_verify_of_nothing_and_an_architecture_that_is_not_asked_for_are_refused(
    locked: SmallProject,
) -> None:
    for line, said in (
        (("--verify", ""), "--verify takes the name of a wheel"),
        (("--how", "empty", "--arch", "aarch64"), "--arch does not go with --how empty"),
    ):
        done = locked.run("build", "--pin", "v1.0", "--source", str(locked.base), *line)
        assert done.code == 2, done.text
        assert said in done.err
