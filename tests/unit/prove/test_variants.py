"""A patch less one hunk, and mutants: what turns the proof red, and what only breaks it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.prove import trials, unproven, variants
from patchkit.prove.judge import BROKEN, GREEN, NOT_RED, RAISES, RED, Seen, Verdict, variant
from tests.conftest import SmallProject

Write = Callable[[str, str], Path]
Open = Callable[[], Any]

SOURCE = """A = 1
{gap}

def b():
    return 1
{gap}

def c():
    return b()
{gap}

# a comment
"""
GAP = "\n" + "\n".join(f"# {n}" for n in range(12))

PROOF = """
import pytest
from engine import far


@pytest.mark.witness
def test_a():
    assert far.A == 2


def test_d():
    assert far.c() == 2


def test_last():
    open({marks!r}, "a").write("last ")
"""


@pytest.fixture
def far(project: SmallProject, write_proof: Write, tmp_path: Path) -> SmallProject:
    """A patch of four hunks: one that an assertion needs, one without which another's call is
    of nothing, that call, and a comment."""
    (project.base / "engine/far.py").write_text(SOURCE.format(gap=GAP))
    first = project.edited("far", "engine/far.py", "A = 1\n", "A = 2\n")
    work = project.at / "work" / "engine/far.py"
    text = work.read_text().replace("def b():\n    return 1", "def d():\n    return 2")
    work.write_text(text.replace("return b()", "return d()").replace("a comment", "one comment"))
    diff = ["git", "diff", "--full-index", "HEAD~1"]
    made = subprocess.run(diff, cwd=project.at / "work", capture_output=True, check=True)
    first.write_bytes(first.read_bytes().partition(b"diff --git")[0] + made.stdout)
    write_proof("test_far", PROOF.format(marks=str(tmp_path / "marks")))
    return project


def test_without_a_hunk_a_proof_is_red_broken_or_neither(far: SmallProject, proving: Open) -> None:
    with proving() as p:
        runs: list[str] = []
        p.prover.told = lambda patch, what: runs.append(what)
        with trials.Trials(p.prover, p.derived, p.trees) as t:
            after, found = t.of(p.proofs["far.patch"], hunks=True, mutants=False)
            _, again = t.of(p.proofs["far.patch"], hunks=True, mutants=False)
    assert after.state == GREEN
    assert found == again
    assert runs[:2] == ["directly after it", "directly after it, with torch loaded before"]
    assert len(runs) == 6
    assert [v.verdict.state for v in found] == [RED, RAISES, RAISES, NOT_RED]
    assert "NameError" in found[1].verdict.why[0]
    assert [v.place for v in found][:2] == ["engine/far.py hunk 1", "engine/far.py hunk 2"]
    left, wrong = unproven.judge("far.patch", {v.place: v.verdict for v in found}, {})
    assert left == ["engine/far.py hunk 4"]
    assert [f.found for f in wrong] == ["it is not red, and no reason is stated"]


@pytest.mark.parametrize("line", ["b = nothing", "import missing", "b = 1 / 0"])
def test_a_patch_whose_own_code_keeps_the_proof_from_being_collected_raises(
    far: SmallProject, proving: Open, line: str
) -> None:
    mutants = far.series / "proofs" / "far.mutants"
    mutants.mkdir()
    diff = f"--- a/engine/far.py\n+++ b/engine/far.py\n@@ -1,3 +1,3 @@\n-A = 2\n+{line}\n \n # 0\n"
    (mutants / "a.diff").write_text(diff)
    with proving() as p, trials.Trials(p.prover, p.derived, p.trees) as t:
        _, found = t.of(p.proofs["far.patch"], hunks=False, mutants=True)
    assert [v.verdict.state for v in found] == [RAISES]


def test_a_proof_that_cannot_be_collected_for_its_own_sake_is_broken(
    far: SmallProject, write_proof: Write, proving: Open
) -> None:
    text = "import pytest\nfrom engine.far import d\n\n\n@pytest.mark.witness\ndef test_a():\n"
    write_proof("test_far", f"{text}    assert d() == 2\n")
    with proving() as p, trials.Trials(p.prover, p.derived, p.trees) as t:
        _, found = t.of(p.proofs["far.patch"], hunks=True, mutants=False)
    assert [v.verdict.state for v in found] == [NOT_RED, BROKEN, NOT_RED, NOT_RED]


def test_a_run_ends_at_the_first_assertion_and_is_not_taken_for_a_whole_one(
    far: SmallProject, proving: Open, tmp_path: Path
) -> None:
    with proving() as p:
        (_, tree), *_ = variants.left_out_trees(p.prover, p.derived, p.trees, "far.patch")
        proof = p.proofs["far.patch"]
        for _ in range(2):  # the second is from what is kept
            seen = p.prover.seen(proof, tree, first=True)
            assert [row["outcome"] for row in seen.tests.values()] == [
                "failed",
                "not run",
                "not run",
            ]
        assert not (tmp_path / "marks").exists()
        whole = p.prover.seen(proof, tree)
        assert [row["outcome"] for row in whole.tests.values()] == ["failed", "passed", "passed"]
        assert p.prover.seen(proof, tree, first=True) == whole
    assert (tmp_path / "marks").read_text() == "last "


def test_nothing_is_tried_where_the_proof_is_not_green_directly_after_its_patch(
    project: SmallProject, write_proof: Write
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited("wider", "engine/plan.py", "WIDTH = 8\n", "WIDTH = 9\n")
    text = "import pytest\nfrom engine import plan\n\n\n@pytest.mark.witness\ndef test_both():\n"
    write_proof("test_deeper", f"{text}    assert (plan.DEPTH, plan.WIDTH) == (3, 9)\n")
    here = ("--source", str(project.base), "--python", sys.executable)
    ran = project.run("prove", "deeper", "--hunks", "--mutants", *here)
    assert ran.code == 1, ran
    assert "the proof of deeper.patch is not green directly after it" in ran.out + ran.err
    assert "goes red" not in ran.out


def test_what_the_command_says(far: SmallProject) -> None:
    mutants = far.series / "proofs" / "far.mutants"
    mutants.mkdir()
    for name, new in (("three", "A = 3"), ("typo", "A = B")):
        diff = (
            f"--- a/engine/far.py\n+++ b/engine/far.py\n@@ -1,3 +1,3 @@\n-A = 2\n+{new}\n \n # 0\n"
        )
        (mutants / f"{name}.diff").write_text(diff)
    (far.series / "proofs" / "far.unproven").write_text("engine/far.py hunk 4: a comment\n")
    here = ("--source", str(far.base), "--python", sys.executable)
    ran = far.run("prove", "--hunks", "--mutants", *here)
    said = " ".join((ran.out + ran.err).split())
    assert ran.code == 1, ran
    assert "hunk 2: raises: test_far.py::test_d: NameError: name 'd' is not defined" in said
    assert "far.patch: hunk engine/far.py hunk 4: NOT PROVEN: a comment" in said
    assert "1 red by assertion, 2 without which the patch's own code raises, 1 not proven" in said
    assert "too many hunks are not proven" in said
    assert "the mutant typo of far.patch breaks the proof instead of turning it red" in said
    assert "2 mutants: 1 red by assertion" in said


def test_an_assertion_counts_beside_stray_errors() -> None:
    stray = {"outcome": "failed", "by_assertion": False, "line": "NameError: d"}
    red = {"outcome": "failed", "by_assertion": True, "line": "assert 1 == 2"}
    assert variant(Seen({"a": stray, "b": red})) == Verdict(RED, ("b: assert 1 == 2",))
    assert variant(Seen({"a": stray})) == Verdict(BROKEN, ("a: NameError: d",))
    assert variant(Seen({}, "no module")).state == BROKEN
    own = {**stray, "raised_in": "p/a.py"}
    assert variant(Seen({"a": own, "b": stray}), {"p/a.py"}).state == RAISES
    assert variant(Seen({"a": own}), {"p/b.py"}).state == BROKEN
    assert variant(Seen({"a": own, "b": red}), {"p/a.py"}).state == RED
    assert variant(Seen({}, "no name", raised_in="p/a.py"), {"p/a.py"}).state == RAISES
    assert variant(Seen({"a": {"outcome": "passed"}})).state == NOT_RED
