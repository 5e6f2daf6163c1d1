"""What upstream did to a hunk's lines: the release from the sources, the commit from a history."""

from __future__ import annotations

import json
import resource
import shutil
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import BASE, SmallProject
from tests.unit.rebase.ground import git, history, release, with_sources


@pytest.fixture
def releases(locked: SmallProject) -> SmallProject:
    return with_sources(locked)


def blame(project: SmallProject, patch: str, *args: str, onto: str = "v2.0") -> dict[str, Any]:
    """The one hunk that is blamed."""
    done = project.run("blame", patch, "--pin", "v1.0", "--onto", onto, "--json", *args)
    assert done.code == 0, done.text
    body: dict[str, Any] = json.loads(done.out)
    (hunk,) = body["hunks"]
    assert isinstance(hunk, dict)
    return hunk


def test_a_hunk_that_holds_says_so(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/lanes.py": ("def lane_0", "# new\n# new\ndef lane_0")})
    hunk = blame(releases, "later")
    assert (hunk["state"], hunk["since"], hunk["diff"]) == ("holds", "", [])
    assert hunk["lines"] == [35, 41]
    assert hunk["now"] == {"file": "engine/lanes.py", "lines": [37, 43]}
    assert (
        "every line that it needs stands in v2.0"
        in releases.run("blame", "later", "--onto", "v2.0").out
    )


def test_the_release_that_changed_the_lines_is_named_with_what_it_did(
    releases: SmallProject,
) -> None:
    release(releases, "v2.0", {"engine/plan.py": ("STEPS = 4", "STEPS = 5")})
    release(releases, "v3.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 9")}, after="v2.0")
    release(releases, "v4.0", {"engine/lanes.py": ("return 0", "return 7")}, after="v3.0")
    hunk = blame(releases, "deeper", onto="v4.0")
    assert (hunk["state"], hunk["before"], hunk["since"]) == ("conflict", "v2.0", "v3.0")
    assert hunk["diff"] == [
        "@@ -1,3 +1,3 @@",
        " STEPS = 5",
        " WIDTH = 8",
        "-DEPTH = 2",
        "+DEPTH = 9",
    ]
    text = releases.run("blame", "deeper", "--onto", "v4.0").out
    assert "engine/plan.py hunk 1: conflict since v3.0, now lines 1-3" in text
    assert "-DEPTH = 2" in text


@pytest.mark.parametrize(
    ("edit", "state"),
    [
        (("WIDTH = 8\nDEPTH = 2", "WIDTH = 8\nDEPTH = 3"), "upstreamed"),
        (("STEPS = 4\n", "STEPS = 5\n"), "merges"),
        (("DEPTH = 2\n", "DEPTH = 2\nMORE = 1\n"), "conflict"),
        (None, "gone"),
    ],
)
def test_what_became_of_the_lines_has_a_word(
    releases: SmallProject, edit: tuple[str, str] | None, state: str
) -> None:
    release(releases, "v2.0", {"engine/plan.py": edit})
    assert blame(releases, "deeper")["state"] == state


def test_a_look_alike_is_not_taken_for_the_lines(releases: SmallProject) -> None:
    before, after = "    a = 1\n    b = 1\n    c = 1\n", "    d = 1\n    e = 1\n    f = 1\n"
    twin = f"    def twin(self):\n{before}    return 90\n{after}"
    text = f"class One:\n{twin}\n\nclass Two:\n{twin}"
    (releases.base / "engine" / "lanes.py").write_text(text)
    patch = releases.series / "later.patch"
    header = patch.read_text().partition("diff --git")[0]
    patch.write_text(
        header + "diff --git a/engine/lanes.py b/engine/lanes.py\n--- a/engine/lanes.py\n"
        "+++ b/engine/lanes.py\n@@ -3,7 +3,7 @@ class One:\n     a = 1\n     b = 1\n     c = 1\n"
        "-    return 90\n+    return 91\n     d = 1\n     e = 1\n     f = 1\n"
    )
    (releases.series / "series").write_text("later.patch\n")
    at = release(releases, "v2.0", {})
    (at / "engine" / "lanes.py").write_text(text[text.index("class Two") :])
    assert blame(releases, "later")["state"] == "conflict"


def test_lines_of_an_earlier_patch_are_left_out_and_it_is_named(releases: SmallProject) -> None:
    project = SmallProject(releases.at, releases.base)
    project.edited("deeper-still", "engine/plan.py", "DEPTH = 3\n", "DEPTH = 4\n")
    release(releases, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 9")})
    hunk = blame(releases, "deeper-still")
    assert hunk["on"] == ["deeper.patch"]
    assert (hunk["state"], hunk["lines"]) == ("conflict", [1, 3])


def with_history(
    project: SmallProject, steps: list[tuple[str, dict[str, str | None]]], at: Path
) -> list[str]:
    """A history of v1.0 and `steps`; v2.0 is its end. The pins state the commits."""
    ids = history(at, project.base, steps)
    pins = project.at / "pins.toml"
    pins.write_text(pins.read_text().replace("1" * 40, ids[0]))
    end = release(project, "v2.0", {}, commit=ids[-1])
    shutil.rmtree(end)
    shutil.copytree(at, end, ignore=shutil.ignore_patterns(".git"))
    return ids


def cpu_of_children() -> float:
    """Seconds of CPU that ended children took: the wall clock says how busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def filler(number: int) -> tuple[str, dict[str, str | None]]:
    return f"Filler {number}", {"notes.txt": f"{number}\n"}


def test_the_commit_of_a_thousand_is_found_by_looking_at_ten(
    releases: SmallProject, tmp_path: Path
) -> None:
    steps = [filler(n) for n in range(1000)]
    steps[417] = (
        "Count the depth from the device (#4711)\n\nLong words.\n",
        {"engine/plan.py": BASE["engine/plan.py"].replace("DEPTH = 2", "DEPTH = device()")},
    )
    ids = with_history(releases, steps, tmp_path / "clone")
    before = cpu_of_children()
    found = blame(releases, "deeper", "--history", str(tmp_path / "clone"))["history"]
    assert cpu_of_children() - before < 5
    assert found["commit"] == {
        "id": ids[418],
        "subject": "Count the depth from the device (#4711)",
        "author": "Ada",
        "day": "2026-11-05",
        "pull_request": 4711,
    }
    assert found["commits"] == 1000
    # Both ends, and half of what is left each time.
    assert found["looked"] <= ceil(log2(1000)) + 2
    text = releases.run("blame", "deeper", "--onto", "v2.0", "--history", str(tmp_path / "clone"))
    assert f"{ids[418][:12]} (2026-11-05, Ada): Count the depth from the device (#4711)" in text.out


def test_renames_are_followed_to_the_commit_that_changed_the_lines(
    releases: SmallProject, tmp_path: Path
) -> None:
    lanes = BASE["engine/lanes.py"]
    broken = lanes.replace("return 9\n", "return nine()\n")
    steps = [filler(n) for n in range(40)]
    steps[7] = ("Move lanes (#7)", {"engine/lanes.py": None, "engine/core/tracks.py": lanes})
    steps[20] = ("Break it (#20)", {"engine/core/tracks.py": broken})
    steps[33] = ("Move again", {"engine/core/tracks.py": None, "engine/rails.py": broken})
    with_history(releases, steps, tmp_path / "clone")
    hunk = blame(releases, "later", "--history", str(tmp_path / "clone"))
    assert hunk["now"]["file"] == "engine/rails.py"
    assert (hunk["state"], hunk["moved"]) == ("conflict", {"v2.0": "engine/rails.py"})
    found = hunk["history"]
    assert found["commit"]["pull_request"] == 20
    assert [(r["pull_request"], r["file"]) for r in found["renames"]] == [
        (7, "engine/core/tracks.py"),
        (None, "engine/rails.py"),
    ]


def test_a_file_that_nothing_replaces_is_gone_since_a_commit(
    releases: SmallProject, tmp_path: Path
) -> None:
    steps = [filler(0), ("Remove lanes (#5)", {"engine/lanes.py": None}), filler(1)]
    with_history(releases, steps, tmp_path / "clone")
    found = blame(releases, "later", "--history", str(tmp_path / "clone"))["history"]
    assert (found["state"], found["commit"]["pull_request"]) == ("gone", 5)


def test_a_release_branch_is_left_at_its_fork(releases: SmallProject, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    changed = BASE["engine/plan.py"].replace("DEPTH = 2", "DEPTH = 8")
    with_history(releases, [filler(0), ("Deep (#3)", {"engine/plan.py": changed})], clone)
    # The old release is a commit beside main, as releases are.
    old = git(clone, "rev-parse", "main~2")
    tree = git(clone, "rev-parse", f"{old}^{{tree}}")
    side = git(clone, "commit-tree", tree, "-p", old, "-m", "release 1.0")
    pins = releases.at / "pins.toml"
    pins.write_text(pins.read_text().replace(old, side))
    git(clone, "update-ref", "refs/tags/v1.0", side)
    found = blame(releases, "deeper", "--history", str(clone))["history"]
    assert (found["commit"]["pull_request"], found["commits"]) == (3, 2)


def test_a_shallow_history_that_ends_too_early_says_so(
    releases: SmallProject, tmp_path: Path
) -> None:
    changed = BASE["engine/plan.py"].replace("DEPTH = 2", "DEPTH = 8")
    full = tmp_path / "full"
    steps = [filler(0), ("Deep (#3)", {"engine/plan.py": changed}), filler(1)]
    ids = with_history(releases, steps, full)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=2", full.as_uri(), str(clone))
    git(clone, "fetch", "-q", "--depth=1", "origin", ids[0])
    found = blame(releases, "deeper", "--history", str(clone))["history"]
    assert found["commit"] is None
    assert f"the history ends at {ids[2][:12]}" in found["why"]
    assert "--unshallow" in found["why"]


def test_a_partial_clone_names_the_way_out(releases: SmallProject, tmp_path: Path) -> None:
    plan = BASE["engine/plan.py"]
    steps: list[tuple[str, dict[str, str | None]]] = [
        (f"Depth {n}", {"engine/plan.py": plan.replace("DEPTH = 2", f"DEPTH = {n}")})
        for n in range(7, 10)
    ]
    full = tmp_path / "full"
    with_history(releases, steps, full)
    for name, what in (("blobless", "blob:none"), ("treeless", "tree:0")):
        git(full, "config", "uploadpack.allowFilter", "true")
        clone = tmp_path / name
        git(tmp_path, "clone", "-q", "--bare", f"--filter={what}", full.as_uri(), str(clone))
        done = releases.run("blame", "deeper", "--onto", "v2.0", "--history", str(clone))
        assert done.code == 3, done.text
        assert "partial clone" in done.err
        assert "fetch --refetch --no-filter" in done.err


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["deeper", "--onto", "v9"], 2, "v9"),
        (["deeper"], 2, "--onto"),
        (["nothing", "--onto", "v2.0"], 2, "nothing is not among the patches"),
        (["deeper", "--onto", "v1.0"], 2, "same release"),
        (["deeper", "--onto", "v2.0", "--hunk", "7"], 2, "it has engine/plan.py:1"),
        (["deeper", "--onto", "v2.0", "--history", "."], 2, "not a git repository"),
    ],
)
def test_a_wrong_call_is_named(
    releases: SmallProject, args: list[str], code: int, word: str
) -> None:
    release(releases, "v2.0", {})
    done = releases.run("blame", "--pin", "v1.0", *args)
    assert (done.code, "Traceback" in done.text) == (code, False)
    assert word in done.text


def test_a_history_without_the_pin_says_which_commit_to_fetch(
    releases: SmallProject, tmp_path: Path
) -> None:
    history(tmp_path / "clone", releases.base, [filler(1)])
    release(releases, "v2.0", {})
    done = releases.run("blame", "later", "--onto", "v2.0", "--history", str(tmp_path / "clone"))
    assert done.code == 1
    assert f"expected: commit {'1' * 40}" in done.err
    assert "fetch origin" in done.err
