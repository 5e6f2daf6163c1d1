"""init: a project of one's own, checked from its first minute, and nothing where it cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchkit.authoring.start import Asked, Started, start
from patchkit.check.pin import check_pin
from patchkit.derive.base import open_bases
from patchkit.derive.project import find
from patchkit.errors import PatchkitError, Refused, UsageFault
from tests.unit.authoring.making import make_bench


@pytest.fixture
def source(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATCHKIT_CACHE", os.fspath(cache))
    return make_bench(tmp_path).source


def begin(at: Path, source: Path, **options: object) -> Started:
    asked = Asked("engine", source=str(source), **options)  # type: ignore[arg-type]
    return start(at, asked)


def git(at: Path, *args: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    done = subprocess.run(["git", *who, *args], cwd=at, capture_output=True, check=True, text=True)
    return done.stdout.strip()


def clean(at: Path) -> bool:
    project = find(at)
    with open_bases(project) as bases:
        reports = [check_pin(project, pin, bases) for pin in project.pins.pins.values()]
    return all(r.state == "clean" for r in reports)


def test_a_folder_is_enough_for_a_project(tmp_path: Path, source: Path) -> None:
    done = begin(tmp_path / "mine", source)
    assert done.pin == "base"
    assert sorted(done.written) == [
        ".gitattributes",
        ".github/workflows/patchkit.yml",
        ".gitignore",
        "pins.toml",
        "series/base/series",
        "series/base/series.lock",
    ]
    assert 'source = "../upstream"' in (tmp_path / "mine/pins.toml").read_text()
    assert "*.patch -text" in (tmp_path / "mine/.gitattributes").read_text().splitlines()
    assert clean(tmp_path / "mine")


def test_a_repository_beside_the_project_is_named_from_pins_toml(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "release")
    git(source, "tag", "v1.0")
    monkeypatch.chdir(tmp_path)
    done = start(tmp_path / "a" / "mine", Asked("engine", pin="v1.0", git="./upstream"))
    assert done.pin == "v1.0"
    text = (tmp_path / "a/mine/pins.toml").read_text()
    assert 'git = "../../upstream"' in text
    assert git(source, "rev-parse", "HEAD") in text
    monkeypatch.chdir("/")
    assert clean(tmp_path / "a" / "mine")


def test_a_checkout_gives_the_commit_and_its_tag(tmp_path: Path, source: Path) -> None:
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-qm", "one")
    git(source, "tag", "v1.0")
    first = git(source, "rev-parse", "HEAD")
    assert begin(tmp_path / "a", source).pin == "v1.0"
    assert first in (tmp_path / "a/pins.toml").read_text()
    (source / "README.md").write_text("# more\n")
    git(source, "commit", "-qam", "two")
    assert begin(tmp_path / "b", source, pin="v1.0").pin == "v1.0"
    assert first in (tmp_path / "b/pins.toml").read_text()
    assert begin(tmp_path / "c", source).pin == "base"
    assert git(source, "rev-parse", "HEAD") in (tmp_path / "c/pins.toml").read_text()
    assert all(clean(tmp_path / name) for name in "abc")
    note = begin(tmp_path / "d", source, pin="v9").findings[0]
    assert note.note
    assert "no tag v9" in note.message


def test_files_that_are_there_are_added_to(tmp_path: Path, source: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / ".gitignore").write_text("*.pyc\n/build/")
    (mine / ".gitattributes").write_text("*.patch -text\n")
    begin(mine, source)
    assert (mine / ".gitignore").read_text() == "*.pyc\n/build/\n/.patchkit/\n"
    assert (mine / ".gitattributes").read_text().splitlines()[0] == "*.patch -text"
    assert (mine / ".gitattributes").read_text().count("*.patch -text") == 1


def test_a_project_is_never_begun_twice(tmp_path: Path, source: Path) -> None:
    begin(tmp_path / "mine", source)
    with pytest.raises(Refused, match="target-exists"):
        begin(tmp_path / "mine", source)


@pytest.mark.parametrize(
    "options",
    [{"kind": "nothing"}, {"pin": "a b"}, {"package": "no-name"}, {"git": "ext::sh -c x"}],
)
def test_what_cannot_be_leaves_no_folder(
    tmp_path: Path, source: Path, options: dict[str, str]
) -> None:
    with pytest.raises(PatchkitError):
        begin(tmp_path / "mine", source, **options)
    assert not (tmp_path / "mine").exists()


def test_a_source_that_is_not_there_is_a_wrong_command_line(tmp_path: Path, source: Path) -> None:
    with pytest.raises(UsageFault):
        begin(tmp_path / "mine", tmp_path / "nothing")


def test_without_a_pin_only_the_upstream_is_written(tmp_path: Path, source: Path) -> None:
    done = start(tmp_path / "mine", Asked("vllm"))
    assert done.pin is None
    text = (tmp_path / "mine/pins.toml").read_text()
    assert 'kind = "vllm"' in text
    assert not (tmp_path / "mine/series").exists()
