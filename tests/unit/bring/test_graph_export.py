"""The graph is what applying says; an exported series comes back as it was."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from patchkit.bring.graph import Graph, mermaid
from tests.conftest import SmallProject


def test_a_patch_needs_the_one_whose_lines_it_changes(locked: SmallProject) -> None:
    locked.edited("deepest", "engine/plan.py", "DEPTH = 3\n", "DEPTH = 4\n")
    source = ("--source", str(locked.base))
    assert locked.run("lock", *source).code == 0
    body = json.loads(locked.run("graph", "--json", *source).out)
    assert body["needs"] == {
        "deeper.patch": [],
        "wider.patch": [],
        "later.patch": [],
        "deepest.patch": ["deeper.patch"],
    }
    assert body["commutes"] == [["wider.patch", "later.patch"]]
    text = locked.run("graph", "--format", "mermaid", *source).out
    assert "flowchart BT" in text
    assert "p3 --> p0" in text


def test_a_guard_that_cuts_is_said(project: SmallProject) -> None:
    project.edited("first", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n", "wide")
    project.edited("second", "engine/plan.py", "DEPTH = 3\n", "DEPTH = 4\n")
    done = project.run("graph", "--source", str(project.base))
    assert "a guard cuts: second.patch needs first.patch (#+wide)" in done.out


@pytest.mark.parametrize("form", ["quilt", "am", "single", "dir"])
def test_every_form_gives_the_same_files(locked: SmallProject, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    done = locked.run("export", "--format", form, "-o", str(out), "--source", str(locked.base))
    assert done.code == 0, done.text
    whole = tmp_path / "whole"
    args = ("--pin", "v1.0", "--all", "--source", str(locked.base), "--to", str(whole))
    assert locked.run("apply", *args).code == 0
    tree = tmp_path / "tree"
    subprocess.run(["cp", "-r", str(locked.base), str(tree)], check=True)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    if form == "am":
        who = ("-c", "user.name=t", "-c", "user.email=t@t")
        for line in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "base")):
            subprocess.run(["git", *who, *line], cwd=tree, check=True, env=env)
        line = ["git", *who, "am", "-q", str(out / "series.mbox")]
        subprocess.run(line, cwd=tree, check=True, env=env)
    else:
        names = (
            (out / "series").read_text().splitlines()
            if form == "quilt"
            else sorted(os.listdir(out))
        )
        for name in names:
            patch = str(out / name.split()[0])
            subprocess.run(["git", "apply", patch], cwd=tree, check=True, env=env)
    for path in ("engine/plan.py", "engine/lanes.py", "setup.py"):
        assert (tree / path).read_bytes() == (whole / path).read_bytes()
    if form == "quilt":
        for patch in locked.series.glob("*.patch"):
            assert (out / patch.name).read_bytes() == patch.read_bytes()
        assert (out / "series").read_text() == (locked.series / "series").read_text()


def test_nothing_is_written_over(locked: SmallProject, tmp_path: Path) -> None:
    (tmp_path / "series").write_text("mine\n")
    done = locked.run("export", "-o", str(tmp_path), "--source", str(locked.base))
    assert done.code == 1
    assert "target-exists" in done.err
    assert (tmp_path / "series").read_text() == "mine\n"


def test_a_name_stays_in_its_box_of_the_chart() -> None:
    """Quotes would end it, and what begins with # would be read as a character of another name."""
    names = ('a"]; click p0 "x".patch', "b#lt;i>.patch")
    lines = mermaid(Graph(names, dict.fromkeys(names, ()), ()))
    assert lines == [
        "flowchart BT",
        '  p0["a#quot;]; click p0 #quot;x#quot;"]',
        '  p1["b#35;lt;i>"]',
    ]
