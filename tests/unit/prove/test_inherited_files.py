"""What a carried patch inherits beside its proof: the mutants, and the reasons for hunks. What
was recorded on a GPU is inherited by nobody."""

from __future__ import annotations

import json
import subprocess
import sys

from patchkit.derive.project import find
from patchkit.prove.proofs import proofs_of
from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources


def test_mutants_and_reasons_are_inherited_each_for_itself(locked: SmallProject) -> None:
    project = with_sources(locked)
    first = project.series / "proofs"
    (first / "later.mutants").mkdir(parents=True)
    (first / "test_later.py").write_text("def test_nothing(): pass\n")
    (first / "later.mutants" / "one.diff").write_text("x\n")
    (first / "later.unproven").write_text("engine/lanes.py hunk 1: a comment\n")
    for old, new in (("v1.0", "v2.0"), ("v2.0", "v3.0")):
        release(project, new, {"engine/lanes.py": ("def lane_0", f"# {new}\ndef lane_0")})
        assert project.run("rebase", "--pin", old, "--onto", new).code == 0
    # On v2.0 the proof is another one, with the mutants and reasons of v1.0.
    second = project.at / "series" / "v2.0" / "proofs"
    second.mkdir()
    (second / "test_later.py").write_text("def test_other(): pass\n")
    third = project.at / "series" / "v3.0" / "proofs"
    (third / "later.mutants").mkdir(parents=True)
    (third / "later.mutants" / "two.diff").write_text("y\n")
    found = find(project.at)
    two = proofs_of(found, "v2.0", found.series("v2.0"))["later.patch"]
    three = proofs_of(found, "v3.0", found.series("v3.0"))["later.patch"]
    assert (two.module, three.module) == (second / "test_later.py",) * 2
    assert two.mutants == (first / "later.mutants" / "one.diff",)
    assert three.mutants == (third / "later.mutants" / "two.diff",)
    assert two.unproven == three.unproven == first / "later.unproven"


MACHINE = {"gpu": "A GPU", "driver": "1.2.3", "torch": "9.9"}
ON_GPU = """
import pytest

pytestmark = pytest.mark.gpu


@pytest.mark.witness
def test_lane():
    from engine import lanes
    assert lanes.lane_9() == 90
"""


def test_a_record_on_the_new_pin_is_of_the_inherited_proof(locked: SmallProject) -> None:
    project = with_sources(locked)
    (project.series / "proofs").mkdir(parents=True, exist_ok=True)
    (project.series / "proofs" / "test_later.py").write_text(ON_GPU)
    record_on(project, "v1.0")
    release(project, "v2.0", {"engine/lanes.py": ("def lane_0", "# v2.0\ndef lane_0")})
    assert project.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    # What was recorded on v1.0 speaks of other trees.
    assert "later.patch is not proven" in project.run("list", "--pin", "v2.0").text
    record_on(project, "v2.0")
    assert "not proven" not in project.run("list", "--pin", "v2.0").out
    checked = project.run("check", "--pin", "v2.0")
    assert checked.code == 0
    assert "proof-stale" not in checked.text
    proof = project.series / "proofs" / "test_later.py"
    proof.write_text(ON_GPU + "# edited\n")
    assert project.run("lock", "--pin", "v2.0").code == 0
    assert "changed since: the proof" in project.run("check", "--pin", "v2.0").text


def record_on(project: SmallProject, pin: str) -> None:
    """Export the proofs for a GPU, run them here, and file what came back."""
    at = project.at.parent / f"export-{pin}"
    done = project.run("prove", "--pin", pin, "--gpu", "--export", str(at))
    assert done.code == 0, done.text
    result = at / "result.json"
    line = ["sh", str(at / "run.sh"), "-o", str(result)]
    environment = {"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}
    subprocess.run(line, capture_output=True, env=environment, check=True)
    result.write_text(json.dumps({**json.loads(result.read_text()), **MACHINE}))
    done = project.run("prove", "--pin", pin, "--record", str(result))
    assert done.code == 0, done.text
