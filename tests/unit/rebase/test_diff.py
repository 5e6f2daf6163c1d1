"""Two series compared patch by patch: what follows from lines is no difference, all else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources


@pytest.fixture
def moved(locked: SmallProject) -> SmallProject:
    """v1.0 with three patches and v2.0 with the same ones, carried by rebase."""
    project = with_sources(locked)
    release(
        project,
        "v2.0",
        {
            "engine/lanes.py": ("def lane_0", "# a\n# b\n# c\ndef lane_0"),
            "engine/plan.py": ("STEPS = 4", "STEPS = 5"),
        },
    )
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0", "--date", "2031-02-03")
    assert done.code == 0, done.text
    return project


def diff(project: SmallProject, *args: str, old: str = "v1.0") -> dict[str, Any]:
    done = project.run("diff", "--series", old, "v2.0", "--json", *args)
    assert done.code == 0, done.text
    body: dict[str, Any] = json.loads(done.out)
    return body


def states(body: dict[str, Any]) -> dict[str, str]:
    return {row["patch"]: row["state"] for row in body["patches"]}


def edit(project: SmallProject, name: str, old: str, new: str) -> Path:
    at = project.at / "series" / "v2.0" / name
    text = at.read_text()
    assert old in text
    at.write_text(text.replace(old, new))
    return at


def test_what_was_only_carried_is_no_difference(moved: SmallProject) -> None:
    later = [(moved.at / "series" / pin / "later.patch").read_text() for pin in ("v1.0", "v2.0")]
    assert later[0] != later[1]
    done = moved.run("diff", "--series", "v1.0", "v2.0", "later", "wider", "--exit-code")
    assert (done.code, done.out) == (0, "v1.0 to v2.0: 2 same\n")


def test_a_changed_hunk_is_shown_inside_its_hunk(moved: SmallProject) -> None:
    edit(moved, "later.patch", "+    return 90\n", "+    return 91\n")
    (row,) = diff(moved, "later")["patches"]
    assert row["state"] == "changed"
    (change,) = row["changes"]
    assert (change["file"], change["old"], change["new"]) == ("engine/lanes.py", 1, 1)
    assert "-+    return 90" in change["diff"]
    assert "++    return 91" in change["diff"]
    assert "  def lane_9():" in change["diff"]
    done = moved.run("diff", "--series", "v1.0", "v2.0", "later", "--exit-code")
    assert done.code == 1
    assert "-+    return 90\n++    return 91\n" in done.out


def test_context_that_upstream_changed_is_shown(moved: SmallProject) -> None:
    body = diff(moved, "deeper")
    (row,) = body["patches"]
    assert row["state"] == "changed"
    assert row["changes"][0]["diff"][1:3] == ["- STEPS = 4", "+ STEPS = 5"]


def test_header_guard_and_order_are_compared(moved: SmallProject) -> None:
    edit(moved, "later.patch", "Why.\n", "Why not.\n")
    series = moved.at / "series" / "v2.0" / "series"
    lines = series.read_text().splitlines()
    comment, deeper, wider, later = lines
    series.write_text("\n".join([comment, later, deeper, wider.replace("#+wide", "#+slim")]) + "\n")
    notes = {row["patch"]: row["note"] for row in diff(moved)["patches"]}
    assert notes["later.patch"] == "its place in the series changed; header"
    assert notes["wider.patch"] == "guard wide -> slim"


def test_a_renamed_patch_is_paired_by_where_it_came_from(moved: SmallProject) -> None:
    at = moved.at / "series" / "v2.0"
    (at / "later.patch").rename(at / "last.patch")
    series = at / "series"
    series.write_text(series.read_text().replace("later.patch", "last.patch"))
    rows = {row["patch"]: row for row in diff(moved)["patches"]}
    assert rows["last.patch"]["old"]["patch"] == "later.patch"
    assert rows["last.patch"]["note"] == "was later.patch"
    assert rows["last.patch"]["changes"] == []


def test_added_and_dropped_patches_are_told_apart_with_the_reason(locked: SmallProject) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 3")})
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    edit(project, "series", "later.patch\n", "later.patch\nmore.patch\n")
    text = (project.at / "series" / "v2.0" / "later.patch").read_text()
    more = text.replace("Rebased-From: v1.0/later.patch\n", "").replace(
        "Subject: later", "Subject: x"
    )
    (project.at / "series" / "v2.0" / "more.patch").write_text(more)
    body = diff(project)
    assert states(body) == {
        "deeper.patch": "dropped",
        "wider.patch": "same",
        "later.patch": "same",
        "more.patch": "added",
    }
    assert "upstreamed in v2.0" in body["patches"][0]["reason"]
    assert "upstreamed in v2.0" in project.run("diff", "--series", "v1.0", "v2.0").out


def test_a_patch_is_followed_over_a_series_between(locked: SmallProject) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 3")})
    release(project, "v3.0", {"engine/lanes.py": ("def lane_0", "# a\ndef lane_0")}, after="v2.0")
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    assert project.run("rename", "later", "last", "--pin", "v2.0").code == 0
    assert project.run("rebase", "--pin", "v2.0", "--onto", "v3.0").code == 0
    done = project.run("diff", "--series", "v1.0", "v3.0", "--json")
    rows = {row["patch"]: row for row in json.loads(done.out)["patches"]}
    assert rows["last.patch"]["old"]["patch"] == "later.patch"
    assert rows["last.patch"]["changes"] == []
    assert "upstreamed in v2.0" in rows["deeper.patch"]["reason"]


def test_a_file_with_another_name_is_said_once(locked: SmallProject) -> None:
    project = with_sources(locked)
    at = release(project, "v2.0", {})
    (at / "engine" / "core").mkdir()
    (at / "engine" / "lanes.py").rename(at / "engine" / "core" / "lanes.py")
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    rows = {row["patch"]: row for row in diff(project)["patches"]}
    assert rows["later.patch"]["note"] == "engine/lanes.py -> engine/core/lanes.py"
    assert rows["later.patch"]["changes"] == []


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["--series", "v1.0", "v9"], 2, "v9"),
        (["--series", "v1.0"], 2, "--series"),
        ([], 2, "--series"),
        (["--series", "v1.0", "v2.0", "nothing"], 2, "neither v1.0 nor v2.0 has a patch nothing"),
    ],
)
def test_a_wrong_call_is_named(locked: SmallProject, args: list[str], code: int, word: str) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {})
    if args[-1:] == ["nothing"]:
        assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    done = project.run("diff", *args)
    assert (done.code, "Traceback" in done.text) == (code, False), done.text
    assert word in done.text
