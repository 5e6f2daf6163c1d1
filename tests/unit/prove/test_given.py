"""`prove --python EXE`: an interpreter as it is; what it lacks is named, nothing is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.prove.environment import given
from tests.conftest import SmallProject
from tests.unit.prove.conftest import DEEPER

Write = Callable[[str, str], Path]


@pytest.fixture
def deeper(project: SmallProject, write_proof: Write) -> SmallProject:
    """A project with one patch and its proof."""
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", DEEPER)
    return project


def prove(project: SmallProject, *options: str) -> tuple[int, str]:
    done = project.run("prove", "--source", str(project.base), "--python", sys.executable, *options)
    return done.code, done.text


def test_a_proof_runs_in_it(deeper: SmallProject) -> None:
    code, text = prove(deeper)
    assert code == 0, text
    assert "deeper.patch  proven  red     green" in text


def test_a_hunk_that_the_proof_does_not_need_is_named_with_its_reason(
    deeper: SmallProject, write_proof: Write
) -> None:
    patch = deeper.series / "deeper.patch"
    more = "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -1,4 +1,4 @@\n def lane_0():\n"
    patch.write_text(f"{patch.read_text()}{more}-    return 0\n+    return -0\n \n \n")
    code, text = prove(deeper, "--hunks")
    assert code == 1
    assert "the proof of deeper.patch does not go red without engine/lanes.py hunk 1" in text
    assert "too many hunks are not proven" in text
    why = "engine/lanes.py hunk 1: the same number\n"
    (deeper.series / "proofs" / "deeper.unproven").write_text(why)
    code, text = prove(deeper, "deeper", "--hunks")
    assert code == 0, text
    assert "engine/lanes.py hunk 1: NOT PROVEN: the same number" in text


def test_a_mutant_that_the_proof_does_not_see_is_named(deeper: SmallProject) -> None:
    mutants = deeper.series / "proofs" / "deeper.mutants"
    mutants.mkdir()
    lead = "--- a/engine/plan.py\n+++ b/engine/plan.py\n@@ -1,3 +1,3 @@\n"
    seen = "-STEPS = 4\n+STEPS = 5\n WIDTH = 8\n DEPTH = 3\n"
    (mutants / "unseen.diff").write_text(lead + seen)
    (mutants / "seen.diff").write_text(lead + " STEPS = 4\n WIDTH = 8\n-DEPTH = 3\n+DEPTH = 2\n")
    code, text = prove(deeper, "--mutants")
    assert code == 1
    assert "mutant seen: goes red" in text
    assert "the proof of deeper.patch does not see its mutant unseen" in text


def test_what_the_proofs_import_has_to_be_there(deeper: SmallProject, write_proof: Write) -> None:
    write_proof("test_deeper", f"import no_such_thing\n{DEEPER}")
    code, text = prove(deeper)
    assert code == 3
    assert f"{sys.executable} lacks no_such_thing" in text


def test_for_a_gpu_torch_has_to_be_there(deeper: SmallProject, write_proof: Write) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is here")
    write_proof("test_deeper", DEEPER.replace("@pytest.mark.witness", "@pytest.mark.gpu"))
    code, text = prove(deeper, "--gpu")
    assert code == 3
    assert "lacks torch" in text


def test_its_digest_is_of_what_is_installed() -> None:
    assert given(sys.executable).digest == given(sys.executable, ["json"]).digest


def test_no_interpreter_is_a_fault_of_the_surroundings(deeper: SmallProject) -> None:
    done = deeper.run("prove", "--source", str(deeper.base), "--python", "/no/such/python")
    assert done.code == 3
    assert "/no/such/python does not run" in done.err
