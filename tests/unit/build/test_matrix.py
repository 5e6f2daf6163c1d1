"""The build matrix: which cells there are, what their ids are made of, and which are affected."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.build import wheels as published

SUM = "sha256:" + "5" * 64


def git(project: SmallProject, *args: str) -> None:
    line = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args]
    subprocess.run(line, cwd=project.at, check=True, capture_output=True)


def cells(project: SmallProject, *args: str) -> dict[str, dict[str, str]]:
    done = project.run("matrix", "--format", "json", *args)
    assert done.code == 0, done.text
    return {cell["id"]: cell for cell in json.loads(done.out)["cells"]}


@pytest.fixture
def wheels(locked: SmallProject) -> SmallProject:
    """The locked project, whose pin states two wheels, committed."""
    pins = locked.at / "pins.toml"
    names = [f"engine-1.0-cp38-abi3-manylinux_2_28_{arch}.whl" for arch in ("x86_64", "aarch64")]
    files = '[pins."v1.0".files]\n' + "".join(f'"{name}" = "{SUM}"\n' for name in names)
    pins.write_text(pins.read_text().replace("[stacks.default]", f"{files}\n[stacks.default]"))
    assert locked.run("lock", "--source", str(locked.base)).code == 0
    git(locked, "init", "-q")
    git(locked, "add", "pins.toml", "series")
    git(locked, "commit", "-qm", "first")
    return locked


def test_every_stack_has_a_cell_for_each_wheel_and_way(wheels: SmallProject) -> None:
    assert sorted(cells(wheels)) == [
        "v1.0-default-empty-x86_64-py3.11",
        "v1.0-default-overlay-aarch64",
        "v1.0-default-overlay-x86_64",
        "v1.0-wide-empty-x86_64-py3.11",
        "v1.0-wide-overlay-aarch64",
        "v1.0-wide-overlay-x86_64",
    ]


def test_github_reads_it_as_a_matrix_and_each_cell_has_one_command(wheels: SmallProject) -> None:
    done = wheels.run("matrix", "--format", "github")
    assert done.out.count("\n") == 1
    for cell in json.loads(done.out)["include"]:
        assert cell["command"].startswith(f"patchkit build --pin v1.0 --stack {cell['stack']} ")
        assert cell["runner"] == ["ubuntu-24.04"]


def test_a_native_stack_is_not_laid_over_a_wheel(wheels: SmallProject) -> None:
    wheels.edited("compiled", "setup.py", "setup()\n", "setup(name='x')\n", "wide")
    assert wheels.run("lock", "--source", str(wheels.base)).code == 0
    assert {cell["stack"] for cell in cells(wheels).values() if cell["how"] == "overlay"} == {
        "default"
    }


def test_a_new_compiled_source_in_the_package_is_refused_by_the_build_and_has_no_overlay_cell(
    wheels: SmallProject, tmp_path: Path
) -> None:
    diff = (
        "Subject: A kernel\n\nWhy.\n---\n"
        "diff --git a/engine/fast.cu b/engine/fast.cu\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/engine/fast.cu\n@@ -0,0 +1 @@\n+int x;\n"
    )
    (wheels.series / "fast.patch").write_text(diff)
    with (wheels.series / "series").open("a") as file:
        file.write("fast.patch #+wide\n")
    assert wheels.run("lock", "--source", str(wheels.base)).code == 0
    overlays = {cell["stack"] for cell in cells(wheels).values() if cell["how"] == "overlay"}
    assert overlays == {"default"}
    base, digest = published.wheel(tmp_path, wheels.base)
    given = ("--base-wheel", str(base), "--sha256", digest, "--source", str(wheels.base))
    done = wheels.run("build", "--stack", "wide", *given, "-o", str(tmp_path / "out"))
    assert done.code == 1
    assert "needs-build" in done.text
    assert "engine/fast.cu" in done.text


def test_only_what_a_change_touches_is_affected(wheels: SmallProject) -> None:
    before = cells(wheels)
    assert cells(wheels, "--affected-since", "HEAD") == {}
    wheels.edited("more", "engine/plan.py", "WIDTH = 8\n", "WIDTH = 9\n", "wide")
    assert wheels.run("lock", "--source", str(wheels.base)).code == 0
    found = cells(wheels, "--affected-since", "HEAD")
    assert {cell["stack"] for cell in found.values()} == {"wide"}
    assert set(cells(wheels)) == set(before), "ids do not change with the series"


def test_another_commit_of_a_source_touches_the_pins_cells(wheels: SmallProject) -> None:
    pins = wheels.at / "pins.toml"
    row = '[pins."v1.0".sources]\n"https://x.invalid/deep.git v1" = "' + "a" * 40 + '"\n'
    pins.write_text(pins.read_text().replace("[stacks.default]", f"{row}\n[stacks.default]"))
    assert set(cells(wheels, "--affected-since", "HEAD")) == set(cells(wheels))
    git(wheels, "commit", "-qam", "a source")
    assert cells(wheels, "--affected-since", "HEAD") == {}


def test_an_unknown_revision_is_named(wheels: SmallProject) -> None:
    done = wheels.run("matrix", "--affected-since", "no-such-branch")
    assert done.code == 1
    assert "no-such-branch" in done.text


@pytest.mark.parametrize(
    "name",
    ["", "^", "HEAD~99", "HEAD:", "HEAD:pins.toml", ":/a source", "@{u}", "..", "-p", "\x1b[2J"],
)
def test_what_names_no_commit_is_refused(wheels: SmallProject, name: str) -> None:
    done = wheels.run("matrix", f"--affected-since={name}")
    assert done.code == 1
    assert "git knows no such revision here" in done.text
    assert "\x1b[2J" not in done.text


def test_no_variable_of_the_callers_leads_to_another_repository(
    wheels: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels.edited("more", "engine/plan.py", "WIDTH = 8\n", "WIDTH = 9\n", "wide")
    assert wheels.run("lock", "--source", str(wheels.base)).code == 0
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    found = cells(wheels, "--affected-since", "HEAD")
    assert {cell["stack"] for cell in found.values()} == {"wide"}


def test_a_project_below_the_top_of_its_repository(wheels: SmallProject, tmp_path: Path) -> None:
    from patchkit.build.revision import Revision

    below = wheels.at / "series"
    name = next(p.name for p in sorted(below.glob("*/series")) for p in [p.parent])
    was = Revision(str(below), "HEAD")
    assert was.read(f"{name}/series") == (below / name / "series").read_bytes()
    assert was.read(name) is None
    assert was.read("pins.toml") is None


def test_a_project_in_no_repository_says_so(wheels: SmallProject) -> None:
    (wheels.at / ".git").rename(wheels.at / "git-elsewhere")
    done = wheels.run("matrix", "--affected-since", "HEAD")
    assert done.code == 1
    assert "the project is in no git repository" in done.text


def test_a_native_stack_is_compiled_on_machines_of_ones_own(
    wheels: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.build import matrix
    from patchkit.cli.matrix import _runner
    from patchkit.derive.project import find
    from patchkit.upstreams.building import Recipe

    wheels.edited("compiled", "setup.py", "setup()\n", "setup(name='x')\n", "wide")
    assert wheels.run("lock", "--source", str(wheels.base)).code == 0
    recipe = Recipe(native={"cuda": {}}, arches={"x86_64": "9.0"}, cuda="13.0")
    monkeypatch.setattr(matrix, "recipe", lambda kind: recipe)
    found = {cell.id: cell for cell in matrix.cells(find(wheels.at)) if cell.stack == "wide"}
    assert list(found) == ["v1.0-wide-cuda-x86_64-py3.11-cu130"]
    cell = found["v1.0-wide-cuda-x86_64-py3.11-cu130"]
    assert not cell.runnable
    assert cell.command[-4:] == ("--how", "cuda", "--arch", "x86_64")
    assert _runner(cell) == ["self-hosted", "cuda", "x86_64"]
