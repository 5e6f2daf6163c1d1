"""Drift with proofs: what text alone cannot tell, keys that stay, and the table as Markdown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources

PROOF = """
import pytest
from engine import plan


@pytest.mark.witness
def test_depth():
    assert plan.DEPTH == 3


def test_steps():
    assert plan.STEPS == 4
"""


@pytest.fixture
def proved(locked: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """v2.0 only moves lines, v3.0 fixes it in other words, v4.0 breaks what the proof needs."""
    project = with_sources(locked)
    proof = project.series / "proofs" / "test_deeper.py"
    proof.parent.mkdir()
    proof.write_text(PROOF)
    release(project, "v2.0", {"engine/lanes.py": ("def lane_0", "# a\ndef lane_0")})
    release(project, "v3.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 1 + 2")})
    release(project, "v4.0", {"engine/plan.py": ("STEPS = 4", "STEPS = 5")})
    # The interpreter of the tests has no torch, which these proofs do not need either.
    torch = tmp_path / "beside" / "torch-0.dist-info"
    torch.mkdir(parents=True)
    (torch / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0\n")
    monkeypatch.setenv("PYTHONPATH", str(torch.parent))
    return project


def drift(project: SmallProject, *args: str) -> dict[str, Any]:
    onto = [word for pin in ("v2.0", "v3.0", "v4.0") for word in ("--onto", pin)]
    done = project.run("drift", "--pin", "v1.0", *onto, "--json", *args)
    assert done.code == 1, done.text
    body: dict[str, Any] = json.loads(done.out)
    return body


def cells(body: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Of `deeper`, by release: text, proof, key."""
    return {
        row["pin"]: (p["text"], p["proof"], p["key"])
        for row in body["releases"]
        for p in row["patches"]
        if p["patch"] == "deeper.patch"
    }


def test_proofs_say_what_text_cannot_and_are_run_once(proved: SmallProject) -> None:
    python = ("--python", sys.executable)
    before = sorted(str(p) for p in proved.at.rglob("*"))
    assert cells(drift(proved, *python)) == {
        "v2.0": ("clean", "not proven here", ""),
        "v3.0": ("conflict", "not proven here", "v1.0/v3.0/deeper.patch/conflict"),
        "v4.0": ("merged", "not proven here", "v1.0/v4.0/deeper.patch/offset"),
    }
    wanted = {
        "v2.0": ("clean", "proven", ""),
        "v3.0": ("conflict", "obsolete", "v1.0/v3.0/deeper.patch/obsolete"),
        "v4.0": ("merged", "proof-fails", "v1.0/v4.0/deeper.patch/proof-fails"),
    }
    body = drift(proved, "--prove", *python)
    assert cells(body) == wanted
    names = {f["name"]: f["note"] for f in body["findings"] if f["patch"] == "deeper.patch"}
    assert names == {"obsolete": False, "proof-fails": False}
    # What was found is known the next time, and nothing was written into the project.
    again = drift(proved, *python)
    assert cells(again) == wanted
    assert again["findings"] == body["findings"]
    assert sorted(str(p) for p in proved.at.rglob("*")) == before


def test_every_finding_has_the_key_of_its_cell(proved: SmallProject) -> None:
    body = drift(proved)
    keys = [p["key"] for row in body["releases"] for p in row["patches"] if p["key"]]
    told = [d[5:] for f in body["findings"] for d in f["details"] if d.startswith("key: ")]
    assert told == keys
    assert len(set(keys)) == len(keys) == 2


def test_the_table_as_markdown(proved: SmallProject) -> None:
    done = proved.run("drift", "--pin", "v1.0", "--onto", "v2.0", "--onto", "v3.0", "--markdown")
    assert done.out.splitlines() == [
        "| patch | v2.0 | v3.0 |",
        "| --- | --- | --- |",
        "| deeper.patch | clean; not proven here | conflict (1 file, 1 hunk); not proven here |",
        "| wider.patch | clean; not proven here | clean; not proven here |",
        "| later.patch | clean; not proven here | clean; not proven here |",
    ]


def test_a_series_without_proofs_makes_no_environment_ready(locked: SmallProject) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {})
    done = project.run("drift", "--pin", "v1.0", "--prove", "--python", "/no/such/python")
    assert (done.code, done.err) == (0, "")


def test_a_release_with_a_series_says_so_and_no_command_that_would_be_refused(
    proved: SmallProject,
) -> None:
    assert proved.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    assert proved.run("rebase", "--pin", "v1.0", "--onto", "v3.0", "--direct").code == 1
    assert proved.run("rebase", "--drop", "deeper").code == 0
    done = proved.run("drift", "--pin", "v1.0", "--onto", "v2.0", "--onto", "v3.0")
    assert done.out.splitlines()[-1] == (
        "v2.0, v3.0 have series of their own; the table is about the patches of v1.0"
    )
    (command,) = [line for line in done.err.splitlines() if line.startswith("  next:")]
    words = command.partition("patchkit ")[2].partition(",")[0].split()
    assert words == ["diff", "--series", "v1.0", "v3.0"]
    assert "deeper.patch  dropped" in proved.run(*words).out
    done = proved.run("drift", "--pin", "v1.0", "--onto", "v4.0")
    assert "series of" not in done.out.splitlines()[-1]
    assert "next:     patchkit rebase --pin v1.0 --onto v4.0" in done.err


def test_every_hunk_in_conflict_is_counted_and_named(locked: SmallProject) -> None:
    project = with_sources(locked)
    work = project.at / "work" / "engine" / "lanes.py"
    work.write_text(work.read_text().replace("    return 0\n", "    return 100\n"))
    project.edited("ends", "engine/lanes.py", "    return 5\n", "    return 50\n")
    assert project.run("lock", "--pin", "v1.0").code == 0
    edits = ("    return 0\n", "    return zero()\n")
    lanes = release(project, "v2.0", {"engine/lanes.py": edits}) / "engine" / "lanes.py"
    lanes.write_text(lanes.read_text().replace("    return 5\n", "    return five()\n"))
    done = project.run("drift", "--pin", "v1.0", "--onto", "v2.0", "--json")
    (found,) = json.loads(done.out)["findings"]
    assert found["found"] == "conflict (1 file, 2 hunks)"
    assert "so does engine/lanes.py hunk 2" in found["details"]
    (row,) = json.loads(done.out)["releases"]
    assert [p["hunks"] for p in row["patches"] if p["patch"] == "ends.patch"] == [
        ["engine/lanes.py hunk 1", "engine/lanes.py hunk 2"]
    ]
    plan = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0", "--plan")
    assert plan.code == 1
    assert "conflict (1 file, 2 hunks)" in plan.out
    assert "hunk 1 of engine/lanes.py changes what stands at" in plan.err
    assert "so does hunk 2" in plan.err
    assert "next:     patchkit rebase --pin v1.0 --onto v2.0\n" in plan.err
