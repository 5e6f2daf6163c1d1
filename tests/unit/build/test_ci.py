"""The CI files: workflows that GitHub can read, container files on fixed bases, and the runner."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
CI = ROOT / "ci"
WORKFLOWS = sorted((CI / "github").glob("*.yml"))
BASES = json.loads((CI / "bases.json").read_text())


def workflow(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text())
    return found


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{path.name}/{name}", step)
        for path in WORKFLOWS
        for name, job in workflow(path)["jobs"].items()
        for step in job["steps"]
    ]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_has_triggers_least_rights_and_time_limits(path: Path) -> None:
    found = workflow(path)
    assert found[True], "`on`, which YAML 1.1 reads as true"
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        assert job["timeout-minutes"] <= 360, name
        assert job["runs-on"], name
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), name


def test_no_expression_stands_in_a_script() -> None:
    # What GitHub pastes into a script is run; values go through the environment.
    assert [name for name, step in steps() if "${{" in step.get("run", "")] == []


def test_every_action_is_listed_and_no_commit_is_made_up() -> None:
    used = {tuple(step["uses"].split("@")) for _, step in steps() if "uses" in step}
    assert used == {(name, row["commit"] or row["ref"]) for name, row in BASES["actions"].items()}
    for row in BASES["actions"].values():
        assert row["commit"] is None or re.fullmatch(r"[0-9a-f]{40}", row["commit"])


def test_the_matrix_job_feeds_the_wheel_job() -> None:
    jobs = workflow(CI / "github" / "wheels.yml")["jobs"]
    assert jobs["wheel"]["strategy"]["matrix"] == "${{ fromJSON(needs.matrix.outputs.cells) }}"
    script = next(s["run"] for s in jobs["matrix"]["steps"] if s.get("id") == "cells")
    assert "patchkit matrix --format github" in script
    # Every field that the workflow takes from a cell is one that a cell has.
    from patchkit.build.matrix import Cell
    from patchkit.cli.matrix import _facts, _runner

    cell = Cell("v1.0", "default", "overlay", "x86_64", "", "13.0", "0" * 16)
    text = (CI / "github" / "wheels.yml").read_text()
    wanted = set(re.findall(r"\bmatrix\.(\w+)", text)) - {"outputs"}
    assert wanted <= {*_facts(cell), "runner"}
    assert _runner(cell) == ["ubuntu-24.04"]


@pytest.mark.parametrize("path", sorted(CI.glob("*.containerfile")), ids=lambda p: p.name)
def test_a_container_file_takes_its_base_from_the_list(path: Path) -> None:
    lines = re.sub(r"\\\n\s*", "", path.read_text()).splitlines()
    words = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    known = {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "VOLUME", "ENTRYPOINT"}
    assert {word for word, _ in words} <= known
    bases = [rest for word, rest in words if word == "FROM"]
    assert bases in (["${BASE}"], ["${RUST} AS rust", "${BASE}"])
    assert path.name.partition(".")[0] in BASES["images"]
    for word, rest in words:
        if word == "RUN":
            assert shlex.split(rest)
        if word == "ENTRYPOINT":
            assert (ROOT / json.loads(rest)[1]).is_file()


def test_no_digest_is_made_up_and_nothing_is_built_without_one() -> None:
    for row in BASES["images"].values():
        assert row["digest"] is None or re.fullmatch(r"sha256:[0-9a-f]{64}", row["digest"])
        assert "latest" not in row["ref"]


def test_the_runner_refuses_two_wheels_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = tool("cells")
    cell = {"id": "v1.0-default-overlay", "command": "patchkit build --pin v1.0", "runnable": True}
    sums = iter(["a", "a", "a", "b"])
    monkeypatch.setattr(
        runner, "build", lambda cell, out, umask: {"sha256": next(sums), "content": "c"}
    )
    runner.run(cell, tmp_path)
    with pytest.raises(SystemExit, match="a first, then b"):
        runner.run(cell, tmp_path)


def test_drift_speaks_once_a_release() -> None:
    drift = tool("drift")
    finding = {
        "note": False,
        "message": "a.patch on v2: conflict",
        "details": ["key: v1/v2/a.patch/conflict"],
    }
    again = {**finding, "details": ["key: v1/v2/b.patch/conflict"]}
    found = drift.by_release([finding, again, {**finding, "note": True}])
    assert list(found) == [("v1", "v2")]
    assert len(found["v1", "v2"]) == 2
    assert drift.title("v1", "v2") == "drift: v1 on v2"


def test_a_release_that_the_series_was_carried_to_gets_no_issue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drift = tool("drift")
    monkeypatch.setattr(drift.sys, "argv", ["drift.py", "--dry-run"])
    monkeypatch.setattr(drift, "has_series", lambda pin: pin in ("v0.30.0", "v0.31.0"))

    def found(pin: str) -> list[dict[str, Any]]:
        keys = [f"key: {pin}/{release}/a.patch/conflict" for release in ("v0.31.0", "v0.99.0")]
        return [{"note": False, "message": "a.patch", "details": [key]} for key in keys]

    monkeypatch.setattr(drift, "drift", found)
    assert drift.main() == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("drift:")]
    assert titles == ["drift: v0.30.0 on v0.99.0", "drift: v0.31.0 on v0.99.0"]


def test_drift_is_compared_cell_by_cell() -> None:
    drift = tool("drift")
    clean, lost = (
        {"text": "clean", "why": "x.py line 1"},
        {"text": "conflict", "why": "x.py is gone"},
    )
    expected = {"cells": {"a.patch": {"v2": clean, "v3": lost}}}

    def said(**cells: str) -> dict[str, Any]:
        rows = [{"pin": r, "patches": [{"patch": "a.patch", "text": t}]} for r, t in cells.items()]
        return {"releases": rows}

    assert drift.differences(expected, said(v2="clean", v3="conflict")) == []
    (other,) = drift.differences(expected, said(v2="merged", v3="conflict"))
    assert other == "a.patch on v2: expected clean (x.py line 1), found merged"
    (gone,) = drift.differences(expected, said(v2="clean"))
    assert gone == "a.patch on v3: expected conflict, and drift has no such cell"
    (new,) = drift.differences(expected, said(v2="clean", v3="conflict", v4="clean"))
    assert new.startswith("a.patch on v4: clean, and drift-expected.json has no such cell")
    expected["cells"]["a.patch"]["v2"] = {"text": "clean", "why": " "}
    (bare,) = drift.differences(expected, said(v2="clean", v3="conflict"))
    assert bare == "a.patch on v2: clean, without a reason"


def test_what_is_expected_of_drift_has_a_reason_in_every_cell() -> None:
    body = json.loads((CI / "drift-expected.json").read_text())
    assert (ROOT / "series" / body["pin"] / "series").is_file()
    releases = {tuple(sorted(row)) for row in body["cells"].values()}
    assert len(releases) == 1
    for row in body["cells"].values():
        for cell in row.values():
            assert cell["text"] in {"clean", "merged", "moved", "conflict", "upstreamed", "dropped"}
            assert len(cell["why"]) > 20


def test_the_runner_takes_the_line_that_the_workflow_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = tool("cells")
    ids = ("a-overlay", "b-overlay", "c-cuda")
    found = [{"id": n, "command": "", "runnable": "cuda" not in n} for n in ids]
    ran: list[tuple[str, str]] = []
    monkeypatch.setattr(runner, "cells", lambda since: found)
    monkeypatch.setattr(runner, "run", lambda cell, out: ran.append((cell["id"], str(out))))
    script = next(s["run"] for name, s in steps() if "cells.py run" in s.get("run", ""))
    line = shlex.split(script.replace("$CELL", "b-overlay").partition("ci/cells.py ")[2])
    monkeypatch.setattr("sys.argv", ["cells.py", *line])
    assert runner.main() == 0
    assert ran == [("b-overlay", "dist")]
    monkeypatch.setattr("sys.argv", ["cells.py", "run", "--out", str(tmp_path)])
    assert runner.main() == 0
    assert [name for name, _ in ran[1:]] == ["a-overlay", "b-overlay"], "what compiles is left out"
    monkeypatch.setattr("sys.argv", ["cells.py", "run", "nothing"])
    with pytest.raises(SystemExit, match="no such cell: nothing"):
        runner.main()


def test_cells_that_compile_are_configured_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = tool("cells")
    line = "patchkit build --pin v1.0 --how"
    found = [
        {"id": "a-overlay", "command": f"{line} overlay", "runnable": True},
        {"id": "b-cuda", "command": f"{line} cuda", "runnable": False},
    ]
    ran: list[list[str]] = []

    def command(cell: dict[str, Any], more: list[str], umask: int = 0) -> dict[str, Any]:
        ran.append([cell["id"], *more])
        return {"said": "-- Configuring done (1.0s)", "count": 3}

    monkeypatch.setattr(runner, "cells", lambda since: found)
    monkeypatch.setattr(runner, "command", command)
    monkeypatch.setattr("sys.argv", ["cells.py", "configure", "--offline"])
    assert runner.main() == 0
    assert ran == [["b-cuda", "--configure-only", "--offline"]]
    assert "b-cuda: -- Configuring done (1.0s), 3 compile commands" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["cells.py", "configure", "a-overlay"])
    with pytest.raises(SystemExit, match="needs no compiler"):
        runner.main()


def test_a_cell_that_fails_does_not_stop_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = tool("cells")
    line = "patchkit build --pin v1.0 --how overlay"
    found = [{"id": name, "command": line, "runnable": True} for name in ("a", "b")]

    def build(cell: dict[str, Any], out: Path, umask: int) -> dict[str, Any]:
        if cell["id"] == "a":
            raise SystemExit("a: failed, exit 3")
        return {"sha256": "s", "content": "c"}

    monkeypatch.setattr(runner, "cells", lambda since: found)
    monkeypatch.setattr(runner, "build", build)
    monkeypatch.setattr("sys.argv", ["cells.py", "run", "--out", str(tmp_path)])
    assert runner.main() == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("b: s twice, content c\n", "a: failed, exit 3\n")
