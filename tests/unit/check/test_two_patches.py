"""What is wrong between two patches of a series is said with the names of both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import SmallProject


@pytest.fixture
def stacked(project: SmallProject) -> SmallProject:
    """`second` changes the line that `first` wrote; locked."""
    project.edited("first", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited("second", "engine/plan.py", "DEPTH = 3\n", "DEPTH = 4\n")
    done = project.run("lock", "--source", str(project.base))
    assert done.code == 0, done.text
    return project


def findings(project: SmallProject) -> list[dict[str, Any]]:
    done = project.run("check", "--source", str(project.base), "--json")
    assert done.code == 1, done.text
    return [f for f in json.loads(done.out)["findings"] if not f["note"]]


def test_a_patch_before_the_one_that_it_needs_is_in_the_wrong_order(stacked: SmallProject) -> None:
    (stacked.series / "series").write_text("second.patch\nfirst.patch\n")
    found = [f for f in findings(stacked) if f["name"] == "wrong-order"]
    assert [f["patch"] for f in found] == ["second.patch"]
    assert "first.patch" in found[0]["message"]
    assert found[0]["next"] == "patchkit move second.patch --after first.patch"


def test_a_hunk_in_two_patches_is_a_duplicate(stacked: SmallProject) -> None:
    twice = (stacked.series / "first.patch").read_text()
    (stacked.series / "again.patch").write_text(twice)
    (stacked.series / "series").write_text("first.patch\nagain.patch\n")
    found = [f for f in findings(stacked) if f["name"] == "duplicate"]
    assert [f["patch"] for f in found] == ["again.patch"]
    assert "first.patch" in found[0]["message"]
    assert found[0]["file"] == "engine/plan.py"
