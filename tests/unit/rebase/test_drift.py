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
        "| deeper.patch | clean; not proven here | conflict (1 file(s)); not proven here |",
        "| wider.patch | clean; not proven here | clean; not proven here |",
        "| later.patch | clean; not proven here | clean; not proven here |",
    ]


def test_a_series_without_proofs_makes_no_environment_ready(locked: SmallProject) -> None:
    project = with_sources(locked)
    release(project, "v2.0", {})
    done = project.run("drift", "--pin", "v1.0", "--prove", "--python", "/no/such/python")
    assert (done.code, done.err) == (0, "")
