"""A part of a patch that is done before it: what is left is another change, and is said to be."""

from __future__ import annotations

from patchkit.authoring.form import NEW, REFRESHED
from patchkit.check.locking import relock
from tests.unit.authoring.making import Bench
from tests.unit.authoring.test_commits import GATES, LANES, refused, three

__all__ = ["three"]


def test_a_later_patch_that_loses_a_part_to_an_earlier_one_has_another_effect(
    bench: Bench,
) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 15\n", "fifteen\n"), (LANES, "line 30\n", "thirty\n"))
    path = bench.series / "b.patch"
    path.write_text(path.read_text().replace("Last-Update: 2031-01-31", "Last-Update: 2030-01-01"))
    with bench.session() as (held, _):
        relock(held.project, "v1", held.bases)
    bench.edit("a")
    bench.change(LANES, "line 15\n", "fifteen\n")
    assert bench.refresh() == {"a.patch": REFRESHED, "b.patch": REFRESHED}
    assert "fifteen" not in path.read_text().replace(" fifteen", "")
    assert "Last-Update: 2031-01-31\n" in path.read_text()
    assert bench.check() == []


def test_the_last_half_of_a_split_patch_is_not_the_patch(three: Bench) -> None:
    """On the first half's tree it makes the same file; taken for b.patch, the first half would
    come into the series as a new patch without b's guard."""
    three.edit("b")
    three.change(LANES, "line 10\n", "line ten\n")
    assert three.refresh()["b.patch"] == REFRESHED
    three.git("reset", "-q", "HEAD~1")
    three.change(LANES, "line thirty\n", "line 30\n")
    three.git("commit", "-qam", "Say ten")
    three.change(LANES, "line 30\n", "line thirty\n")
    three.git("commit", "-qam", "Say thirty")
    assert refused(three) == ["missing-patch", "missing-patch"]
    three.git("commit", "-q", "--amend", "-m", "Say thirty\n\nPatch-Name: b.patch")
    states = three.from_commits()
    assert (states["say-ten.patch"], states["b.patch"]) == (NEW, REFRESHED)


def test_a_file_that_is_done_before_it_is_taken_out_of_a_later_patch(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 15\n", "fifteen\n"), (GATES, "gate 3\n", "three\n"))
    bench.edit("a")
    bench.change(GATES, "gate 3\n", "three\n")
    assert bench.refresh() == {"a.patch": REFRESHED, "b.patch": REFRESHED}
    assert GATES not in (bench.series / "b.patch").read_text()
    assert bench.check() == []
