"""A proof for a GPU goes out as a folder, runs there, and what comes back is checked and filed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SmallProject

Write = Callable[[str, str], Path]

ON_GPU = """
import pytest
from _deep import expected

pytestmark = pytest.mark.gpu


@pytest.mark.witness
def test_depth():
    from engine import plan
    assert plan.DEPTH == expected()


def test_width():
    from engine import plan
    assert plan.WIDTH == 8
"""
MACHINE = {"gpu": "A GPU", "driver": "1.2.3", "torch": "9.9"}


@pytest.fixture
def there(project: SmallProject, write_proof: Write) -> SmallProject:
    """A project whose middle patch has a proof that needs a GPU."""
    project.edited("wider", "engine/lanes.py", "    return 2\n", "    return 20\n")
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited("later", "engine/lanes.py", "    return 9\n", "    return 90\n")
    write_proof("_deep", "def expected():\n    return 3\n")
    write_proof("test_deeper", ON_GPU)
    done = project.run("lock", "--source", str(project.base))
    assert done.code == 0, done.text
    return project


def prove(project: SmallProject, *options: str) -> Any:
    return project.run("prove", "--source", str(project.base), *options)


def ran(project: SmallProject, site: str = "") -> dict[str, Any]:
    """What an export gives when it is run, here, by the machine MACHINE."""
    out = project.at.parent / "export"
    done = prove(project, "--gpu", "--export", str(out))
    assert done.code == 0, done.text
    result = project.at.parent / "result.json"
    line = ["sh", str(out / "run.sh"), "-o", str(result)]
    environment = {"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}
    environment["PK_SITE"] = site
    environment["PK_WORK"] = str(project.at.parent / "run")
    went = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert went.returncode == 0, went.stdout + went.stderr
    body = json.loads(result.read_text())
    return {**body, **MACHINE}


def recorded(project: SmallProject, body: dict[str, Any]) -> Any:
    file = project.at.parent / "back.json"
    file.write_text(json.dumps(body))
    return prove(project, "--record", str(file))


RESULT = "proofs/results/deeper.json"


def test_what_comes_back_is_filed_and_said_where_a_gpu_is_missing(there: SmallProject) -> None:
    body = ran(there)
    done = recorded(there, body)
    assert done.code == 0, done.text
    record = json.loads((there.series / RESULT).read_text())
    outcomes = {half: record[half]["tests"] for half in ("red", "green")}
    name = "test_deeper.py::test_depth"
    assert [outcomes[half][name]["outcome"] for half in outcomes] == ["failed", "passed"]
    assert {key: record[key] for key in MACHINE} == MACHINE
    # lanes.py was not loaded; plan.py was, and the patch changes it.
    assert sorted(record["payload"]) == ["engine/__init__.py", "engine/plan.py"]
    before, after = record["payload"]["engine/plan.py"]
    assert before != after
    checked = there.run("check", "--source", str(there.base))
    assert checked.code == 0, checked.text
    assert "proof-stale" not in checked.text
    said = prove(there, "deeper")
    assert said.code == 0
    assert "needs a GPU: recorded result of 20" in said.out
    assert "on A GPU" in said.out
    write = there.series / "proofs" / "_deep.py"
    write.write_text(write.read_text() + "# edited\n")
    assert "needs a GPU: stale recorded result of 20" in prove(there, "deeper").out
    (there.series / RESULT).unlink()
    assert "needs a GPU: no recorded result" in prove(there, "deeper").out


def test_an_export_holds_no_more_than_the_difference_and_the_package(there: SmallProject) -> None:
    ran(there)
    export = there.at.parent / "export"
    over = sorted(p.relative_to(export / "over").parts[1:] for p in (export / "over").rglob("*.py"))
    # Before: what wider changed. After: that, and the patch's own; nothing of later.
    assert over == [("engine", "lanes.py"), ("engine", "lanes.py"), ("engine", "plan.py")]
    assert sorted(p.name for p in (export / "proofs").iterdir()) == ["_deep.py", "test_deeper.py"]


def test_what_the_interpreter_lacks_may_stand_in_a_folder_of_its_own(
    there: SmallProject, write_proof: Write
) -> None:
    write_proof("test_deeper", "import carried\n" + ON_GPU)
    with pytest.raises(AssertionError, match="lacks carried"):
        ran(there)
    shutil.rmtree(there.at.parent / "export")
    site = there.at.parent / "site"
    site.mkdir()
    (site / "carried.py").write_text("")
    body = ran(there, site=str(site))
    assert recorded(there, body).code == 0


def test_a_result_without_its_red_half_is_refused(there: SmallProject) -> None:
    body = ran(there)
    body["patches"]["deeper.patch"]["red"] = {"tests": {}, "errors": ["out of time"]}
    done = recorded(there, body)
    assert done.code == 1
    assert "bad-record" in done.err
    assert "the red half" in done.err
    assert "out of time" in done.err
    assert not (there.series / RESULT).exists()


def test_a_red_half_that_is_green_is_refused(there: SmallProject) -> None:
    body = ran(there)
    body["patches"]["deeper.patch"]["red"] = body["patches"]["deeper.patch"]["green"]
    done = recorded(there, body)
    assert done.code == 1
    assert "test_depth failed by assertion before the patch" in done.err


def test_a_result_of_another_proof_is_refused(there: SmallProject, write_proof: Write) -> None:
    body = ran(there)
    write_proof("_deep", "def expected():\n    return 3  # three\n")
    done = recorded(there, body)
    assert done.code == 1
    assert "the proof as it is now" in done.err


def test_a_result_of_other_trees_is_refused_unless_all_it_used_is_the_same(
    there: SmallProject,
) -> None:
    body = ran(there)
    # An edit of the patch before, in a file that the run did not use.
    patch = there.series / "wider.patch"
    patch.write_text(patch.read_text().replace("+    return 20", "+    return 21"))
    assert there.run("lock", "--source", str(there.base)).code == 0
    assert recorded(there, body).code == 0
    patch = there.series / "deeper.patch"
    patch.write_text(patch.read_text().replace("+DEPTH = 3", "+DEPTH = 3  # three"))
    assert there.run("lock", "--source", str(there.base)).code == 0
    done = recorded(there, body)
    assert done.code == 1
    assert "engine/plan.py" in done.err


def test_check_calls_a_record_stale_only_when_what_it_speaks_of_changed(
    there: SmallProject,
) -> None:
    assert recorded(there, ran(there)).code == 0
    patch = there.series / "later.patch"
    patch.write_text(patch.read_text().replace("+    return 90", "+    return 91"))
    assert there.run("lock", "--source", str(there.base)).code == 0
    checked = there.run("check", "--source", str(there.base))
    assert checked.code == 0, checked.text
    assert "proof-stale" not in checked.text
    patch = there.series / "deeper.patch"
    patch.write_text(patch.read_text().replace("+DEPTH = 3", "+DEPTH = 3  # three"))
    assert there.run("lock", "--source", str(there.base)).code == 0
    checked = there.run("check", "--source", str(there.base))
    assert checked.code == 0
    assert "note: proof-stale" in checked.err
    assert "engine/plan.py" in checked.err


def test_check_refuses_a_record_that_was_tampered_with(there: SmallProject) -> None:
    assert recorded(there, ran(there)).code == 0
    path = there.series / RESULT
    path.write_text(path.read_text().replace('"passed"', '"failed"'))
    checked = there.run("check", "--source", str(there.base))
    assert checked.code == 1
    assert "bad-record" in checked.err


def test_what_people_wrote_into_a_record_stays(there: SmallProject) -> None:
    body = ran(there)
    assert recorded(there, body).code == 0
    path = there.series / RESULT
    path.write_text(json.dumps({**json.loads(path.read_text()), "notes": ["measured twice"]}))
    assert recorded(there, body).code == 0
    assert json.loads(path.read_text())["notes"] == ["measured twice"]


def test_without_a_proof_for_a_gpu_nothing_is_exported(
    project: SmallProject, write_proof: Write
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", ON_GPU.replace("pytestmark = pytest.mark.gpu", ""))
    done = prove(project, "--gpu", "--export", str(project.at.parent / "export"))
    assert done.code == 1
    assert "no proof has a test for a GPU" in done.err


@pytest.mark.parametrize(
    "options",
    [
        ("--export", "x"),
        ("--gpu", "--export", "x", "--record", "y"),
        ("--record", "y", "--hunks"),
        ("--gpu",),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    project: SmallProject, options: tuple[str, ...]
) -> None:
    assert prove(project, *options).code == 2


def test_measurements_beside_the_records_are_none(there: SmallProject) -> None:
    results = there.series / "proofs" / "results"
    results.mkdir()
    (results / "deeper.measured.json").write_text("{}")
    assert there.run("check", "--source", str(there.base)).code == 0
    (results / "deeper.json").write_text("{}")
    checked = there.run("check", "--source", str(there.base))
    assert checked.code == 1
    assert "bad-record" in checked.err
