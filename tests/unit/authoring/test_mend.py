"""lint --fix mends what cannot change an effect, with the lock; all of it or nothing."""

from __future__ import annotations

import pytest

from patchkit.authoring.mend import lint_pin, members, mend
from patchkit.derive.project import find
from patchkit.errors import Refused
from tests.unit.authoring.making import Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"


@pytest.fixture
def two(bench: Bench) -> Bench:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (GATES, "gate 9\n", "gate nine\n"))
    return bench


def run(bench: Bench, only: list[str] | None = None) -> dict[str, str]:
    with bench.session() as (held, standing):
        ready = mend(held, standing.pin, only)
        held.commit(ready, "lint --fix")
        return {row.patch: row.state for row in ready.rows}


def spoil(bench: Bench, name: str, *edits: tuple[str, str]) -> None:
    at = bench.series / name
    text = at.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    at.write_text(text)


def test_what_is_in_form_stays_byte_for_byte(two: Bench) -> None:
    before = two.snapshot()
    assert set(run(two).values()) == {"unchanged"}
    assert two.snapshot() == before
    assert {lint.level for lint in lint_pin(find(two.root), "v1").lints} == {"note"}


def test_noise_is_taken_away_and_the_lock_follows(two: Bench) -> None:
    good = two.patches()
    spoil(two, "a.patch", (" line 8\n", " line 8\n-- \n2.39.5\n\n"))
    assert run(two) == {"a.patch": "mended", "b.patch": "unchanged"}
    assert two.patches() == good
    assert two.check() == []


def test_only_the_named_patches_are_mended(two: Bench) -> None:
    good = two.patches()
    for name, last in (("a.patch", " line 8\n"), ("b.patch", " gate 12\n")):
        spoil(two, name, (last, f"{last}-- \n2.39.5\n\n"))
    assert run(two, ["b.patch"])["b.patch"] == "mended"
    assert two.patches()["b.patch"] == good["b.patch"]
    assert two.patches()["a.patch"] != good["a.patch"]


def test_an_edit_by_hand_is_not_locked_unseen(two: Bench) -> None:
    spoil(two, "a.patch", (" line 8\n", " line 8\n-- \n2.39.5\n\n"))
    spoil(two, "b.patch", ("+gate nine", "+gate IX"))
    before = two.snapshot()
    with pytest.raises(Refused) as refusal:
        run(two)
    assert [(f.name, f.where.patch) for f in refusal.value.findings] == [
        ("patch-edited", "b.patch")
    ]
    assert two.snapshot() == before


def test_nor_is_one_in_a_patch_that_is_mended(two: Bench) -> None:
    spoil(two, "b.patch", ("+gate nine", "+gate IX"))
    spoil(two, "b.patch", (" gate 12\n", " gate 12\n-- \n2.39.5\n\n"))
    before = two.snapshot()
    with pytest.raises(Refused) as refusal:
        run(two)
    assert [(f.name, f.where.patch) for f in refusal.value.findings] == [
        ("patch-edited", "b.patch")
    ]
    assert two.snapshot() == before


def test_what_only_a_person_can_mend_is_said_and_nothing_is_written(two: Bench) -> None:
    spoil(two, "a.patch", (" line 8\n", " line 8\n-- \n2.39.5\n\n"))
    spoil(two, "b.patch", ("-gate 9\n", ""))
    before = two.snapshot()
    with pytest.raises(Refused) as refusal:
        run(two)
    assert {f.where.patch for f in refusal.value.findings} == {"b.patch"}
    assert two.snapshot() == before


def test_patches_are_known_by_name_and_by_path(two: Bench) -> None:
    project = find(two.root)
    assert members(project, "v1", ["a", "b.patch"]) == ["a.patch", "b.patch"]
    assert members(project, "v1", [str(two.series / "a.patch")]) == ["a.patch"]
    assert members(project, "v1", ["a", "other"]) is None
