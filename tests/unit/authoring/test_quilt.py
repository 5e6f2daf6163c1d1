"""quilt works in our folder: it pushes, refreshes and pops, and import takes back what it wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from patchkit.authoring.importing import How, take_back, tidy
from patchkit.series.header import parse_header
from tests.unit.authoring.making import AUTHOR, MOMENT, Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"

pytestmark = pytest.mark.skipif(shutil.which("quilt") is None, reason="quilt is not installed")


@pytest.fixture
def three(bench: Bench) -> Bench:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"), (GATES, "gate 2\n", "gate two\n"))
    bench.new("b", guard="fast")
    bench.change(LANES, "line 30\n", "line thirty\n")
    (bench.tree / "new file.txt").write_text("new\n")
    os.remove(bench.tree / "README.md")
    bench.git("add", "-A")
    bench.refresh()
    bench.add_patch("c", (GATES, "gate 9\n", "gate nine\n"))
    return bench


class Quilt:
    """A copy of the base, patched by quilt from our folder."""

    def __init__(self, bench: Bench) -> None:
        self.at = bench.root.parent / "quilted"
        shutil.copytree(bench.source, self.at)
        self.env = {**os.environ, "QUILT_PATCHES": str(bench.series), "LC_ALL": "C"}

    def __call__(self, *args: str) -> None:
        done = subprocess.run(
            ["quilt", "--quiltrc", "-", *args],
            cwd=self.at,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def files(self) -> dict[str, bytes]:
        return {
            str(p.relative_to(self.at)): p.read_bytes()
            for p in sorted(self.at.rglob("*"))
            if p.is_file() and ".pc" not in p.parts
        }


def take(bench: Bench) -> dict[str, str]:
    how = How(author=AUTHOR)
    with bench.session() as (held, standing):
        again = held.standing(standing.pin, take_back(held.project, "v1", how))
        ready = tidy(again, None, how, MOMENT)
        held.commit(ready, "import")
        return {row.patch: row.state for row in ready.rows}


def in_tree(bench: Bench) -> dict[str, bytes]:
    return {
        str(p.relative_to(bench.tree)): p.read_bytes()
        for p in sorted(bench.tree.rglob("*"))
        if p.is_file() and ".git" not in p.parts
    }


def test_quilt_pushes_what_we_apply(three: Bench) -> None:
    quilt = Quilt(three)
    quilt("push", "-a", "--fuzz=0")
    assert quilt.files() == in_tree(three)
    quilt("pop", "-a")


def test_a_patch_that_quilt_only_wrote_anew_comes_back_byte_for_byte(three: Bench) -> None:
    before = three.snapshot()
    quilt = Quilt(three)
    for _ in range(3):
        quilt("push", "--fuzz=0")
        quilt("refresh", "-f")
    quilt("pop", "-a")
    assert three.snapshot() != before
    take(three)
    assert three.snapshot() == before
    assert three.check() == []


@pytest.mark.parametrize("options", [(), ("-p0",), ("-pab",), ("-U5", "--no-index"), ("--sort",)])
def test_what_was_edited_under_quilt_is_the_patch(three: Bench, options: tuple[str, ...]) -> None:
    good = three.patches()
    quilt = Quilt(three)
    quilt("push", "b.patch", "--fuzz=0")
    lanes = quilt.at / LANES
    lanes.write_text(lanes.read_text().replace("line thirty\n", "line thirty\nand one\n"))
    quilt("refresh", *options)
    quilt("push", "-a", "--fuzz=0")
    after = quilt.files()
    quilt("pop", "-a")
    states = take(three)
    assert states["b.patch"] == "refreshed"
    assert three.patches()["a.patch"] == good["a.patch"]
    assert three.patches()["c.patch"] == good["c.patch"]
    header = parse_header(three.patches()["b.patch"])
    assert header.first("Last-Update") == MOMENT.day
    assert (header.subject, header.author, header.body) == ("B", AUTHOR, "")
    assert (three.series / "series").read_text() == "a.patch\nb.patch #+fast\nc.patch\n"
    assert three.check() == []
    three.edit()
    assert in_tree(three) == after


def test_a_patch_that_quilt_made_is_taken_in(three: Bench, tmp_path: Path) -> None:
    quilt = Quilt(three)
    quilt("push", "-a", "--fuzz=0")
    quilt("new", "fresh.diff")
    quilt("add", LANES)
    lanes = quilt.at / LANES
    lanes.write_text(lanes.read_text().replace("line 20\n", "line twenty\n"))
    quilt("refresh")
    quilt("pop", "-a")
    assert "series-edited" in {f.name for f in three.check()}
    states = take(three)
    assert states["fresh.diff"] == "refreshed"
    header = parse_header((three.series / "fresh.diff").read_bytes())
    assert header.subject == "Fresh"
    assert three.check() == []
