"""Compiled builds of a small project: one path with the others for label, papers and --verify."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.build import native
from patchkit.build import run as builds
from patchkit.build.ask import Asked
from patchkit.build.built import Built
from patchkit.build.machine import Machine
from patchkit.derive.base import open_bases
from patchkit.derive.project import find
from patchkit.errors import EnvironmentFault, Refused, UsageFault
from patchkit.upstreams.building import CONFIGURED, Fetched, Recipe
from tests.conftest import SmallProject

SETUP = """import os, subprocess, sys
from setuptools import setup
assert os.environ["GIT_ALLOW_PROTOCOL"] == "none"
assert "SECRET" not in os.environ
deps = os.environ["FETCHCONTENT_BASE_DIR"]
with open("engine/value.json", "w") as stream:
    stream.write(open(os.path.join(deps, "deep-src", "value.json")).read())
if "build_ext" in sys.argv:
    subprocess.check_call(["cmake", ".", "-DX=1"])
    subprocess.check_call(["cmake", "--build", "."])
    raise SystemExit("it went on to compile")
setup(
    name="engine",
    version=os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"],
    packages=["engine"],
    package_data={"engine": ["*.json"]},
)
"""
CMAKE = """#!/bin/sh
test "$2" = -DX=1 || exit 1
test "$CMAKE_EXPORT_COMPILE_COMMANDS" = ON || exit 2
{
mkdir -p build/temp
echo '[{"file": "a.cu"}, {"file": "b.cu"}]' > build/temp/compile_commands.json
echo '-- Configuring done (0.1s)'
}
"""
HERE = Machine(2, 8.0, 8.0, {"g++": "13.1"}, headers=frozenset(["numa.h"]))


@pytest.fixture
def compiled(
    project: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SmallProject:
    """A project that is built for "cpu" with one fetched source, which a folder stands in for."""
    (project.base / "setup.py").write_text(SETUP)
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    assert project.run("lock", "--source", str(project.base)).code == 0
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "value.json").write_text("1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cmake").write_text(CMAKE)
    (tmp_path / "bin" / "cmake").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SECRET", "1")
    row = Fetched("Deep", "https://deep.invalid/x.git", "a" * 40)
    recipe = Recipe(
        native={"cpu": {"X": "1"}, "cuda": {}},
        memory=1,
        disk=1,
        at=str(tmp_path / "one" / "a place"),
        fetched=lambda tree, paths, device, arch: (row,),
    )
    monkeypatch.setattr(native, "recipe", lambda kind: recipe)
    monkeypatch.setattr("patchkit.upstreams.building.recipe", lambda kind: recipe)
    monkeypatch.setattr("patchkit.build.machine.look", lambda at, python: HERE)
    return project


def asked(project: SmallProject, tmp_path: Path, **more: object) -> Asked:
    made = Asked(
        "v1.0",
        None,
        "cpu",
        source=str(project.base),
        python=sys.executable,
        use=(f"deep={tmp_path / 'deep'}",),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def build(project: SmallProject, what: Asked, out: Path) -> tuple[Built, tuple[str, str]]:
    with open_bases(find(project.at), offline=True) as bases:
        return builds.build(bases.project, bases, what, str(out))


def test_it_is_the_same_twice_and_known_by_label_papers_and_verify(
    compiled: SmallProject, tmp_path: Path
) -> None:
    what = asked(compiled, tmp_path)
    first, beside = build(compiled, what, tmp_path / "o")
    old = os.umask(0o077)
    try:
        second, others = build(compiled, what, tmp_path / "p" / "q")
    finally:
        os.umask(old)
    assert first.version.startswith("1.0+cpu.pk")
    assert first.sha256 == second.sha256
    for one, two in zip(beside, others, strict=True):
        assert Path(one).read_bytes() == Path(two).read_bytes()
    assert not (tmp_path / "one" / "a place").exists(), "what was compiled is gone"
    said = json.loads(Path(beside[0]).read_bytes())["predicate"]["buildDefinition"]
    assert said["buildType"] == "urn:patchkit:build:cpu:1"
    kinds = [row["annotations"]["kind"] for row in said["resolvedDependencies"]]
    assert {"source", "patch", "tree"} <= set(kinds)
    assert "MAX_JOBS" not in said["internalParameters"]["environment"], "it has no influence"
    with open_bases(find(compiled.at), offline=True) as bases:
        again, findings = builds.check(
            bases.project, bases, replace(what, pin=None, how=None), first.path
        )
    assert (again.sha256, findings) == (first.sha256, [])


def test_everything_missing_is_said_before_anything_is_written(
    compiled: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Machine(2, 0.5, 8.0, {"g++": "13.1"})
    monkeypatch.setattr("patchkit.build.machine.look", lambda at, python: bare)
    with pytest.raises(EnvironmentFault) as caught:
        build(compiled, asked(compiled, tmp_path, use=()), tmp_path / "o")
    said = [f.message for f in caught.value.findings]
    assert len(said) == 3, "memory, numa.h and the source, in one run"
    assert said[-1].startswith("Deep could not be fetched")
    assert not (tmp_path / "one").exists()
    assert not (tmp_path / "o").exists()


def test_nobody_elses_folder_is_removed(compiled: SmallProject, tmp_path: Path) -> None:
    at = tmp_path / "one" / "a place"
    at.mkdir(parents=True)
    (at / "thesis.txt").write_text("mine\n")
    with pytest.raises(EnvironmentFault, match="did not make"):
        build(compiled, asked(compiled, tmp_path), tmp_path / "o")
    assert (at / "thesis.txt").read_text() == "mine\n"
    (at / "thesis.txt").unlink()
    at.rmdir()
    at.write_text("mine\n")
    with pytest.raises(EnvironmentFault, match="did not make"):
        build(compiled, asked(compiled, tmp_path), tmp_path / "o")


def test_configure_only_stops_where_it_would_compile(
    compiled: SmallProject, tmp_path: Path
) -> None:
    with open_bases(find(compiled.at), offline=True) as bases:
        made = builds.configure(bases.project, bases, asked(compiled, tmp_path, configure=True))
    assert made.said == "-- Configuring done (0.1s)"
    assert made.count == 2
    assert Path(made.commands).name == "compile_commands.json"
    facts = json.loads((Path(made.at) / CONFIGURED).read_text())
    assert (facts["device"], facts["tree"]) == ("cpu", made.tree)


def test_a_cmake_that_fails_is_told_with_its_own_words(
    compiled: SmallProject, tmp_path: Path
) -> None:
    failing = CMAKE.replace(
        "{\n", "echo 'CMake Error at x.cmake:3:'; echo '  no y'; exit 1\n{\n", 1
    )
    (tmp_path / "bin" / "cmake").write_text(failing)
    with open_bases(find(compiled.at), offline=True) as bases, pytest.raises(Refused) as caught:
        builds.configure(bases.project, bases, asked(compiled, tmp_path, configure=True))
    (finding,) = caught.value.findings
    assert finding.details[:2] == ("CMake Error at x.cmake:3:", "  no y")
    assert finding.found == "it stopped before"


def test_a_plan_says_what_is_not_here_yet_and_fetches_nothing(
    compiled: SmallProject, tmp_path: Path
) -> None:
    with open_bases(find(compiled.at), offline=True) as bases:
        made = builds.plan(bases.project, bases, asked(compiled, tmp_path, use=()))
    (note,) = made.missing
    assert note.note
    assert note.message.startswith("Deep is not here yet")


@pytest.mark.parametrize(
    "more",
    [
        {"how": "overlay"},
        {"how": "empty", "use": ()},
        {"archs": "8.9", "how": "cpu"},
        {"archs": "all", "how": "cuda"},
    ],
)
def test_options_of_compiled_builds_go_with_them(more: dict[str, object], tmp_path: Path) -> None:
    made = Asked("v1.0", None, "cpu", use=("deep=x",), configure=True)
    with pytest.raises(UsageFault):
        replace(made, **more).checked()  # type: ignore[arg-type]


def test_offline_an_environment_that_is_not_made_is_missing(
    compiled: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[build-system]\nrequires = ["torch == 2.13.0", "ninja"]\n'
    (compiled.base / "pyproject.toml").write_text(text)
    assert compiled.run("lock", "--source", str(compiled.base)).code == 0
    what = asked(compiled, tmp_path, python=None)
    with pytest.raises(EnvironmentFault) as caught:
        build(compiled, what, tmp_path / "o")
    (finding,) = caught.value.findings
    assert finding.message.startswith("the build environment is not made yet")
    assert finding.where.file == "patchkit/build/env-cpu-torch2.13.0.txt"
    assert not (tmp_path / "one").exists()
    (compiled.base / "pyproject.toml").write_text(text.replace("2.13.0", "9.9"))
    assert compiled.run("lock", "--source", str(compiled.base)).code == 0
    with pytest.raises(EnvironmentFault) as caught:
        build(compiled, what, tmp_path / "o")
    (finding,) = caught.value.findings
    assert "no interpreter is named" in finding.message
    assert finding.expected == "patchkit/build/env-cpu-torch9.9.txt"
