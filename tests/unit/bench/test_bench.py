"""The benchmark's own parts: series that git takes, figures that are read back, one drawing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.goals import goals
from bench.measure import Cost, Failed, run
from bench.ours import CHANGED, FIRST, HELP, TYPER, UNCHANGED, VERSION
from bench.page import BEGIN, END, PAGE, page
from bench.peers import AM, FLOOR, QUILT
from bench.plot import DRAWING, draw
from bench.results import Results, Row, row
from bench.series import Made, many_files, many_patches, with_last_changed
from bench.show import show

FILES = {
    f"pkg/part_{n}.py": "".join(f"def step_{n}_{m}(): return {m}\n" for m in range(300)).encode()
    for n in range(40)
}
ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def git_applies(made: Made, at: Path) -> dict[str, bytes]:
    """The files after `git apply` of every patch in its turn."""
    for path, data in FILES.items():
        (at / path).parent.mkdir(parents=True, exist_ok=True)
        (at / path).write_bytes(data)
    subprocess.run(["git", "init", "-q"], cwd=at, env=ENV, check=True)
    for name, data in made.patches:
        done = subprocess.run(
            ["git", "apply", "-"], cwd=at, env=ENV, input=data, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stderr.decode()}"
    return {path: (at / path).read_bytes() for path in made.files}


@pytest.mark.parametrize(
    "made",
    [
        many_patches(FILES, 6),
        with_last_changed(many_patches(FILES, 50)),
        many_files(FILES, 33),
        many_files(FILES, 1),
    ],
    ids=["6", "50 changed", "33 files", "1 file"],
)
def test_git_takes_every_synthetic_patch_and_leaves_what_the_generator_says(
    made: Made, tmp_path: Path
) -> None:
    assert git_applies(made, tmp_path) == made.files


def test_the_same_seed_gives_the_same_series_and_another_another() -> None:
    assert many_patches(FILES, 6) == many_patches(FILES, 6)
    assert many_patches(FILES, 6).patches != many_patches(FILES, 6, seed=1).patches
    assert len(many_files(FILES, 33).files) == 33


def test_a_changed_series_differs_in_its_last_patch_alone() -> None:
    one = many_patches(FILES, 6)
    two = with_last_changed(one)
    assert one.patches[:-1] == two.patches[:-1]
    assert one.patches[-1] != two.patches[-1]


def test_a_cost_is_that_of_the_process_and_its_children_and_not_of_this_one(
    tmp_path: Path,
) -> None:
    at = tmp_path / "at"
    at.mkdir()
    ballast = bytearray(os.urandom(1 << 20) * 120)
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    cost, said = run([sys.executable, "-c", code + "; print('done')"], at, dict(os.environ))
    assert said == "done\n"
    assert 0.3 <= cost.cpu < 1.5
    assert cost.rss < len(ballast) / 2e6
    with pytest.raises(Failed, match="exit 3"):
        run([sys.executable, "-c", "raise SystemExit(3)"], at, dict(os.environ))


def example() -> Results:
    """Made-up results with every part."""
    about = {
        "machine": {"cores": 2, "processor": "a processor", "python": "3.11"},
        "versions": {"git": "git version 2"},
    }
    results = Results({})
    figures = {
        FIRST: 0.4,
        CHANGED: 0.1,
        UNCHANGED: 0.05,
        FLOOR.name: 0.5,
        AM.name: 8,
        QUILT.name: 9,
    }
    results.put("patches", [Row(t, 500, s, s, s, 50, 5) for t, s in figures.items()], about)
    starts = {VERSION: 0.2, HELP: 0.4, TYPER: 0.1}
    results.put("start", [Row(t, 0, s, s, s, 20, 5) for t, s in starts.items()], about)
    for part in ("growth", "files"):
        rows = [
            Row(tool, n, n / 1000 * slope, n / 1000 * slope, 1, 1, 1)
            for tool, slope in ((FIRST, 1), (FLOOR.name, 2), (AM.name, 20))
            for n in (1, 100, 1000)
        ]
        results.put(part, rows, about)
    return results


def test_results_are_read_back_as_written_and_a_missing_tool_is_not_here(tmp_path: Path) -> None:
    results = example()
    costs = [Cost(3.0, 9.0, 10.0), Cost(1.0, 7.0, 30.0), Cost(2.0, 8.0, 20.0)]
    rows = [row("x", 6, costs, 0.5), Row("stg", 6, note="not here")]
    assert rows[0] == Row("x", 6, 2.0, 1.5, 8.0, 20.0, 3)
    results.put("patches", rows, {"machine": {}, "versions": {}})
    results.save(tmp_path / "r.json")
    again = Results.load(tmp_path / "r.json")
    assert again.rows("patches") == rows
    assert again.rows("files") == results.rows("files")
    again.save(tmp_path / "s.json")
    assert (tmp_path / "r.json").read_bytes() == (tmp_path / "s.json").read_bytes()


def test_a_promise_is_kept_missed_or_not_measured() -> None:
    found = {goal.what: goal for goal in goals(example())}
    assert found["the first time, of git am"].found == pytest.approx(0.05)
    assert found["the first time, of quilt push -a"].kept is False
    assert found["the first time, of the floor"].kept is True
    assert found["patchkit --help, of import typer"].kept is False
    assert found["peak memory, MB"].found == 50
    assert {goal.kept for goal in goals(Results({}))} == {None}
    words = show(example())
    assert "missed" in words
    assert "kept" in words


def test_the_drawing_is_the_same_each_time_and_stays_in_its_frame() -> None:
    results = example()
    text = draw(results)
    assert text == draw(results)
    tree = ElementTree.fromstring(text)
    width, height = float(tree.attrib["width"]), float(tree.attrib["height"])
    lines = [e for e in tree.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 6
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 30 <= y <= height
    with pytest.raises(KeyError, match="not measured"):
        draw(Results({}))


def test_the_page_has_the_figures_between_its_marks() -> None:
    text = f"before\n{BEGIN}old\n{END}after\n"
    made = page(text, example())
    assert made.startswith(f"before\n{BEGIN}```text\nside by side")
    assert made.endswith(f"```\n{END}after\n")
    assert page(made, example()) == made
    with pytest.raises(ValueError, match="figures"):
        page("no marks", example())


def test_drawing_and_page_are_those_of_the_committed_results() -> None:
    results = Results.load()
    assert DRAWING.read_text() == draw(results)
    assert PAGE.read_text() == page(PAGE.read_text(), results)


def test_a_tool_that_is_not_installed_is_told_from_one_that_is() -> None:
    assert AM.installed
    assert not replace(AM, needs="no-such-tool-anywhere").installed
