"""The project's own tests: which belong to a module, and whether they give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from patchkit.prove import theirs
from patchkit.prove.compiling import Touched
from patchkit.prove.theirs import COMMON, Compared, compare_tests, files_for
from tests.conftest import SmallProject

Open = Callable[[], Any]


@pytest.mark.parametrize(
    "text",
    [
        "import p.a.b\n",
        "from p.a.b import thing\n",
        "from p.a import b\n",
        "from p.a import other, b as c\n",
        "from p.a import (\n    other,\n    b,\n)\n",
        "patch('p.a.b.thing')\n",
    ],
)
def test_a_file_that_names_the_module_is_its_test(text: str) -> None:
    assert files_for("p.a.b", "tests", {"tests/test_x.py": text}) == ["tests/test_x.py"]


@pytest.mark.parametrize("text", ["import p.a.bc\n", "from p.a import bc\n", "from q.a import b\n"])
def test_a_longer_name_or_another_package_is_not(text: str) -> None:
    assert files_for("p.a.b", "tests", {"tests/test_x.py": text}) == []


def test_the_mirror_of_its_path_is_its_test_whatever_it_names() -> None:
    texts = {"tests/a/test_b.py": "", "tests/test_b.py": "", "tests/b/test_b.py": ""}
    assert files_for("p.a.b", "tests", texts) == ["tests/a/test_b.py"]
    assert files_for("p.b", "tests", texts) == ["tests/test_b.py"]


def test_a_module_that_everything_names_chooses_its_mirror_only() -> None:
    texts = {f"tests/test_{i}.py": "import p.envs\n" for i in range(COMMON + 1)}
    texts["tests/test_envs.py"] = "import p.envs\n"
    assert files_for("p.envs", "tests", texts) == ["tests/test_envs.py"]


TESTS = """
import pytest
from engine import plan


def test_width():
    assert plan.WIDTH == 8


def test_depth():
    assert plan.DEPTH == 2


def test_gpu():
    pytest.skip("no GPU")


def test_network():
    raise OSError("no network")
"""


def compared(proving: Open) -> list[Compared]:
    with proving() as p:
        touched = [
            Touched(name, p.trees[n], p.trees[n + 1], tuple(sorted(o.changes)))
            for n, (name, o) in enumerate(zip(p.derived.names, p.derived.outcomes, strict=True))
        ]
        return compare_tests(p.prover, touched)


@pytest.fixture
def tested(project: SmallProject) -> SmallProject:
    """A project with tests of its own."""
    (project.base / "tests").mkdir()
    (project.base / "tests" / "test_plan.py").write_text(TESTS)
    return project


def test_tests_that_fail_alike_are_the_same(tested: SmallProject, proving: Open) -> None:
    tested.edited("stepped", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n")
    (found,) = compared(proving)
    assert (found.file, found.patches) == ("tests/test_plan.py", ("stepped.patch",))
    assert (found.state, found.passed, found.failed) == ("same", 2, 2)
    assert set(found.reasons) == {("skipped: needs a GPU", 1), ("failed: OSError: no network", 1)}


def test_a_test_that_fails_only_afterwards_is_named(tested: SmallProject, proving: Open) -> None:
    tested.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    (found,) = compared(proving)
    assert found.state == "differs"
    assert found.differs == (("tests/test_plan.py::test_depth", "passed", "failed"),)


def test_a_long_file_runs_in_pieces_and_a_test_that_hangs_is_not_compared(
    tested: SmallProject, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = TESTS + "\n\ndef test_hangs():\n    import time\n    time.sleep(60)\n"
    (tested.base / "tests" / "test_plan.py").write_text(slow)
    tested.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    monkeypatch.setattr(theirs, "PIECE", 1e-9)  # one test a piece
    monkeypatch.setattr(theirs, "TEST", 0.5)
    (found,) = compared(proving)
    assert found.differs == (("tests/test_plan.py::test_depth", "passed", "failed"),)
    assert (found.passed, found.failed) == (1, 4)
    assert [n for words, n in found.reasons if words.startswith("not compared")] == [1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'x'", "needs compiled code"),
        ("RuntimeError: No CUDA GPUs are available", "needs a GPU"),
        (
            "OSError: We couldn't connect to 'hf.co', Hugging Face",
            "needs a model or the network",
        ),
        ("E   ModuleNotFoundError: No module named 'ray'", "needs a module that is not installed"),
        ("assert 3 == 4 at 0x7f00 in /tmp/x/y.py", "assert … == … at … in …y.py"),
    ],
)
def test_why_a_test_does_not_pass_is_said(line: str, words: str) -> None:
    assert theirs.lacks(line) == words


def test_a_file_that_no_longer_collects_differs(tested: SmallProject, proving: Open) -> None:
    tested.edited("broken", "engine/plan.py", "DEPTH = 2\n", "raise OSError\n")
    (found,) = compared(proving)
    assert found.state == "differs"
    assert {after for _, _, after in found.differs} == {"not collected"}


def test_without_tests_there_is_nothing(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    assert compared(proving) == []
