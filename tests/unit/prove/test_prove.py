"""Red before the patch, green after it; what is judged how, and what is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.prove import prove, run
from patchkit.prove.children import run_child
from patchkit.prove.judge import Seen
from tests.conftest import SmallProject
from tests.unit.prove.conftest import DEEPER

Write = Callable[[str, str], Path]
Open = Callable[[], Any]


def test_a_proof_is_red_before_its_patch_and_green_after_it(
    project: SmallProject, write_proof: Write, proving: Open
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", DEEPER)
    with proving() as p:
        (result,) = p.results()
    assert (result.state, result.red.state, result.green.state) == ("proven", "red", "green")


def test_a_witness_that_fails_by_a_stray_error_is_broken_not_red(
    project: SmallProject, write_proof: Write, proving: Open
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\nDEEP = True\n")
    write_proof("test_deeper", DEEPER.replace("plan.DEPTH == 3", "plan.DEEP"))
    with proving() as p:
        (result,) = p.results()
    assert result.state == "broken"
    assert "not by assertion: AttributeError" in result.red.why[0]


def test_a_known_result_is_not_run_again_and_a_lost_run_is_not_kept(
    project: SmallProject, write_proof: Write, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", DEEPER)
    runs: list[str] = []
    true_run = prove.run_proof

    def counted(module: Path, at: Any, **options: Any) -> Seen:
        runs.append(at.tree)
        return true_run(module, at, **options)

    with proving() as p:
        with monkeypatch.context() as patched:
            lost = Seen({}, "no report after 900 s, exit status -1", 900.0, lost=True)
            patched.setattr(prove, "run_proof", lambda *a, **k: lost)
            assert p.results()[0].state == "broken"
        monkeypatch.setattr(prove, "run_proof", counted)
        assert p.results()[0].state == "proven"
        assert p.results()[0].state == "proven"
    assert len(runs) == 2


def test_bytecode_of_a_new_tree_is_the_bases_and_packages_stand_once(
    project: SmallProject, write_proof: Write, proving: Open
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    with proving() as p:
        at = p.prover.trees
        prefixes = {at.bytecode(tree, sys.executable, "x") for tree in p.trees}
        (prefix,) = prefixes
        compiled = [sorted(Path(prefix + at.folder(tree)).rglob("lanes.*.pyc")) for tree in p.trees]
    assert [len(found) for found in compiled] == [1, 1]
    assert compiled[0][0].samefile(compiled[1][0])


def test_what_a_child_left_running_ends_with_it(tmp_path: Path) -> None:
    line = [sys.executable, "-c", _LEAVES, str(tmp_path / "pid")]
    code, _ = run_child(line, dict(os.environ), str(tmp_path), 60)
    assert code == 0
    assert _ends(int((tmp_path / "pid").read_text()))


def test_a_child_out_of_time_ends(tmp_path: Path) -> None:
    began = time.monotonic()
    code, _ = run_child([sys.executable, "-c", "import time; time.sleep(60)"], {}, "/", 0.5)
    assert code == -1
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("takes", "limits", "said"),
    [
        ("time.sleep(4)", {"CPU": 3}, ""),
        ("exec('while 1: pass')", {"CPU": 2}, "not done after 2 s of processor time"),
        ("time.sleep(60)", {"SECONDS": 2}, "not done after 2 s"),
    ],
    ids=["waiting", "working", "hanging"],
)
def test_a_proof_is_limited_by_the_time_it_takes_itself(
    project: SmallProject,
    write_proof: Write,
    proving: Open,
    monkeypatch: pytest.MonkeyPatch,
    takes: str,
    limits: dict[str, int],
    said: str,
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", f"import time\n{DEEPER}\n\ndef test_more():\n    {takes}\n")
    for name, seconds in limits.items():
        monkeypatch.setattr(run, name, seconds)
    with proving() as p:
        seen = p.prover.seen(p.proofs["deeper.patch"], p.trees[1])
    assert seen.trouble[: len(said) + 1] == (f"{said}:" if said else "")
    assert seen.lost == bool(said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_child_outlives_us(tmp_path: Path, number: int) -> None:
    script = (
        "import sys; from patchkit.prove.children import none_outlives_us, run_child\n"
        "with none_outlives_us(): run_child([sys.executable, '-c', sys.argv[1], sys.argv[2]], {},"
        " '/', 60)"
    )
    pid = tmp_path / "pid"
    sleeps = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    us = subprocess.Popen([sys.executable, "-c", script, sleeps, str(pid)])
    while not pid.exists() or not pid.read_text():
        time.sleep(0.02)
    us.send_signal(number)
    assert us.wait(20) == -number
    assert _ends(int(pid.read_text()))


_LEAVES = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(left.pid))
"""


def _ends(pid: int) -> bool:
    """Whether the process is gone, or a zombie, soon."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
