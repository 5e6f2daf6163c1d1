"""A result also speaks of another tree when nothing that the run took differs there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.prove import prove
from patchkit.prove.alike import Taken, parse_watched, speaks_of
from patchkit.upstreams.plain import Plain
from tests.conftest import SmallProject
from tests.unit.prove.conftest import DEEPER

Write = Callable[[str, str], Path]
Open = Callable[[], Any]

PLAIN = Plain(package="p")
TOOK = Taken(frozenset({"p/__init__.py", "p/a.py"}), frozenset({"p.c"}), frozenset({"p/d"}), False)


@pytest.mark.parametrize(
    ("changed", "moved", "same"),
    [
        ((), (), True),
        (("p/b.py",), (), True),
        (("p/a.py",), (), False),
        (("p/b.py",), ("p/b.py",), True),
        (("p/c.py",), ("p/c.py",), False),  # was asked for, and would be there now
        (("p/c/x.py",), ("p/c/x.py",), False),
        (("p/d/x.json",), ("p/d/x.json",), False),  # in a folder that was listed
        (("p/a/__init__.py",), ("p/a/__init__.py",), False),  # a package goes before p/a.py
    ],
)
def test_what_was_taken_decides(
    changed: tuple[str, ...], moved: tuple[str, ...], same: bool
) -> None:
    assert speaks_of(TOOK, PLAIN, changed, moved) is same


@pytest.mark.parametrize(
    ("listed", "path", "same"),
    [
        (".", "p/new.py", True),  # p is in both: the list of the top is the same
        (".", "new.py", False),
        (".", "new/x.py", False),
        ("p", "p/q/new.py", True),
        ("p", "p/new/x.py", False),
        ("p/*.json", "p/new.json", False),
        ("q", "p/new.py", True),
    ],
)
def test_a_list_of_a_folder_is_of_what_stands_directly_in_it(
    listed: str, path: str, same: bool
) -> None:
    took = Taken(frozenset(), frozenset(), frozenset({listed}), False)
    assert speaks_of(took, PLAIN, (path,), (path,), {"p", "p/q"}) is same


def test_a_run_that_was_not_watched_to_its_end_speaks_of_its_tree_only() -> None:
    assert not speaks_of(parse_watched("beyond 'nvcc' /tree/a.cu\n"), PLAIN, (), ())
    assert not speaks_of(Taken(), PLAIN, (), ())
    assert speaks_of(parse_watched("used p/a.py\n"), PLAIN, ("p/b.py",), ())


def test_what_is_written_down_comes_back() -> None:
    assert Taken.loads(TOOK.dumps()) == TOOK


ODD = """
import json, os, subprocess, sys
import pytest


@pytest.mark.witness
def test_depth():
    if os.fork() == 0:
        import engine.forked
        os._exit(0)
    os.wait()
    subprocess.run([sys.executable, "-c", "import engine.started"], check=True)
    with pytest.raises(ImportError):
        import engine.absent
    folder = os.path.dirname(__import__("engine").__file__)
    os.listdir(os.path.join(folder, "data"))
    from engine import plan
    assert plan.DEPTH == 3
"""


def rerun(project: SmallProject, proving: Open, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the proof of `deeper` runs now."""
    runs: list[str] = []
    true_run = prove.run_proof

    def counted(module: Path, at: Any, **options: Any) -> Any:
        runs.append(at.tree)
        return true_run(module, at, **options)

    with proving() as p, monkeypatch.context() as patched:
        patched.setattr(prove, "run_proof", counted)
        assert [r.state for r in p.results()] == ["proven"]
    return len(runs)


def test_a_later_patch_elsewhere_voids_nothing(
    project: SmallProject, write_proof: Write, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", DEEPER)
    assert rerun(project, proving, monkeypatch) == 2
    project.edited("later", "engine/lanes.py", "    return 9\n", "    return 90\n")
    assert rerun(project, proving, monkeypatch) == 0
    project.edited("wider", "engine/plan.py", "WIDTH = 8\n", "WIDTH = 4 * 2\n")
    assert rerun(project, proving, monkeypatch) == 1


@pytest.mark.parametrize(
    ("path", "old"),
    [
        ("engine/forked.py", "A = 1\n"),
        ("engine/started.py", "A = 1\n"),
        ("engine/data/one.json", "1\n"),
    ],
)
def test_what_other_processes_take_counts(
    project: SmallProject,
    write_proof: Write,
    proving: Open,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    old: str,
) -> None:
    (project.base / "engine" / "data").mkdir()
    for name in ("forked.py", "started.py", "data/one.json"):
        (project.base / "engine" / name).write_text("1\n" if "json" in name else "A = 1\n")
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", ODD)
    assert rerun(project, proving, monkeypatch) == 2
    project.edited("later", path, old, f"{old.strip()}\n\n")
    # A file of a listed folder that only changed is not taken: it was not opened.
    assert rerun(project, proving, monkeypatch) == (0 if "json" in path else 1)
