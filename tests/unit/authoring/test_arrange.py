"""move, rename and drop: lock, guards, comments and proofs go with the patch, or nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.authoring.arrange import drop, move, rename
from patchkit.authoring.sealing import Ready
from patchkit.authoring.standing import Standing
from patchkit.derive.proof_text import digest
from patchkit.derive.records import parse_record, payload_digest, written_record
from patchkit.errors import PatchkitError, UsageFault
from tests.unit.authoring.making import Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"


@pytest.fixture
def four(bench: Bench) -> Bench:
    """a and b touch one file far apart; c builds on a; g is of another file, and guarded."""
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 30\n", "line thirty\nmore\n"))
    bench.add_patch("c", (LANES, "line five\n", "line V\n"))
    bench.add_patch("g", (GATES, "gate 9\n", "gate nine\n"), guard="fast")
    at = bench.series / "series"
    at.write_text(
        "# the order matters\n" + at.read_text().replace("g.patch #+fast", "g.patch #+fast")
    )
    return bench


def run(bench: Bench, action: object, *args: object, **options: object) -> dict[str, str]:
    with bench.session() as (held, standing):
        assert isinstance(standing, Standing)
        ready = action(standing, *args, **options)  # type: ignore[operator]
        assert isinstance(ready, Ready)
        held.commit(ready, "test")
        return {row.patch: row.state for row in ready.rows}


def refused(bench: Bench, action: object, *args: object, **options: object) -> list[str]:
    before = bench.snapshot()
    with pytest.raises(PatchkitError) as refusal:
        run(bench, action, *args, **options)
    assert bench.snapshot() == before
    return [f"{f.name} {f.where.patch}" for f in refusal.value.findings]


def listed(bench: Bench) -> list[str]:
    return (bench.series / "series").read_text().splitlines()


def test_a_move_carries_what_it_passes(four: Bench) -> None:
    states = run(four, move, "b", after=None)
    assert states == {
        "b.patch": "renumbered",
        "a.patch": "renumbered",
        "c.patch": "unchanged",
        "g.patch": "unchanged",
    }
    assert listed(four) == [
        "# the order matters",
        "b.patch",
        "a.patch",
        "c.patch",
        "g.patch #+fast",
    ]
    assert four.check() == []
    states = run(four, move, "g", after="b")
    assert listed(four)[1:] == ["b.patch", "g.patch #+fast", "a.patch", "c.patch"]
    assert four.check() == []


def test_a_move_there_and_back_changes_no_byte(four: Bench) -> None:
    before = four.patches()
    run(four, move, "b", after="c")
    run(four, move, "b", after="a")
    assert four.patches() == before
    assert four.check() == []


def test_a_move_against_what_a_patch_needs_is_refused(four: Bench) -> None:
    assert refused(four, move, "c", after=None) == ["conflict c.patch"]
    with pytest.raises(UsageFault):
        run(four, move, "a", after="a")
    assert refused(four, move, "a", after="nothing") == ["missing-patch nothing"]


def test_a_drop_takes_file_line_and_proof(four: Bench) -> None:
    proofs = four.series / "proofs"
    (proofs / "b.mutants").mkdir(parents=True)
    (proofs / "test_b.py").write_text("def test(): pass\n")
    (proofs / "b.mutants" / "one.diff").write_text("x\n")
    (proofs / "b.unproven").write_text("engine/lanes.py hunk 1: a comment\n")
    (proofs / "test_a.py").write_text("def test(): pass\n")
    from patchkit.check.locking import relock

    with four.session() as (held, _):
        relock(held.project, "v1", held.bases)
    assert run(four, drop, ["b"])["b.patch"] == "dropped"
    assert listed(four) == ["# the order matters", "a.patch", "c.patch", "g.patch #+fast"]
    assert sorted(p.name for p in proofs.rglob("*")) == ["test_a.py"]
    assert not (four.series / "b.patch").exists()
    assert four.check() == []


def test_a_drop_of_what_a_later_patch_needs_is_refused(four: Bench) -> None:
    assert refused(four, drop, ["a"]) == ["conflict c.patch"]
    assert run(four, drop, ["a", "c.patch"])["a.patch"] == "dropped"
    assert four.check() == []


def test_dropping_the_last_patch_leaves_an_empty_checked_series(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    run(bench, drop, ["a"])
    assert listed(bench) == []
    assert bench.check() == []


def test_a_rename_takes_proof_guard_and_comment_with_it(four: Bench) -> None:
    at = four.series / "series"
    at.write_text(at.read_text().replace("b.patch\n", "b.patch # twice\n"))
    proofs = four.series / "proofs"
    (proofs / "g.mutants").mkdir(parents=True)
    (proofs / "test_g.py").write_text("def test(): pass\n")
    (proofs / "g.mutants" / "one.diff").write_text("x\n")
    (proofs / "g.unproven").write_text("engine/lanes.py hunk 1: a comment\n")
    from patchkit.check.locking import relock

    with four.session() as (held, _):
        relock(held.project, "v1", held.bases)
    before = four.patches()
    run(four, rename, "g", "gate-nine")
    run(four, rename, "b", "say-thirty.patch")
    assert listed(four)[1:] == [
        "a.patch",
        "say-thirty.patch # twice",
        "c.patch",
        "gate-nine.patch #+fast",
    ]
    assert four.patches()["gate-nine.patch"] == before["g.patch"]
    assert (proofs / "test_gate_nine.py").is_file()
    assert (proofs / "gate-nine.mutants" / "one.diff").is_file()
    assert (proofs / "gate-nine.unproven").is_file()
    assert not (proofs / "g.unproven").exists()
    assert not (proofs / "test_g.py").exists()
    assert not (proofs / "g.mutants").exists()
    assert four.check() == []


def recorded(module: Path) -> bytes:
    """A record of g.patch, as a GPU run of the proof as it is now leaves it."""
    row = {"outcome": "failed", "witness": True, "by_assertion": True, "line": "assert"}
    payload = {"engine/lanes.py": ("1" * 40, "2" * 40)}
    body = {
        "format": 1,
        "patch": "g.patch",
        "pin": "v1",
        "proof_files": ["test_g.py"],
        "gpu": "a GPU",
        "driver": "1",
        "torch": "2",
        "date": "2026-11-30",
        "command": "run",
        "trees": {"before": "3" * 40, "after": "4" * 40},
        "payload": payload,
        "proof_sha256": digest(module),
        "payload_sha256": payload_digest(digest(module), payload),
        "red": {"tests": {"test_g.py::test": row}},
        "green": {"tests": {"test_g.py::test": {**row, "outcome": "passed"}}},
    }
    return written_record(body)


def test_a_rename_takes_the_record_of_a_gpu_run_with_it(four: Bench) -> None:
    proofs = four.series / "proofs"
    (proofs / "results").mkdir(parents=True)
    (proofs / "test_g.py").write_text("def test(): pass\n")
    (proofs / "results" / "g.json").write_bytes(recorded(proofs / "test_g.py"))
    (proofs / "results" / "g.trace.json.gz").write_bytes(b"a trace")
    (proofs / "results" / "g-other.json").write_bytes(b"another's")
    run(four, rename, "g", "gate-nine")
    found = {path.name: path.read_bytes() for path in (proofs / "results").iterdir()}
    assert sorted(found) == ["g-other.json", "gate-nine.json", "gate-nine.trace.json.gz"]
    assert found["gate-nine.trace.json.gz"] == b"a trace"
    record = parse_record(found["gate-nine.json"], "gate-nine.json")
    assert record.patch == "gate-nine.patch"
    assert record.proof_sha256 == digest(proofs / "test_gate_nine.py")
    run(four, drop, ["gate-nine"])
    assert [path.name for path in (proofs / "results").iterdir()] == ["g-other.json"]


def test_a_rename_makes_no_stale_record_good(four: Bench) -> None:
    proofs = four.series / "proofs"
    (proofs / "results").mkdir(parents=True)
    (proofs / "test_g.py").write_text("def test(): pass\n")
    (proofs / "results" / "g.json").write_bytes(recorded(proofs / "test_g.py"))
    old = digest(proofs / "test_g.py")
    (proofs / "test_g.py").write_text("def test(): assert True\n")
    run(four, rename, "g", "gate-nine")
    record = parse_record((proofs / "results" / "gate-nine.json").read_bytes(), "it")
    assert record.proof_sha256 == old != digest(proofs / "test_gate_nine.py")


def test_a_rename_overwrites_nothing(four: Bench) -> None:
    assert refused(four, rename, "a", "b") == ["duplicate-entry b.patch"]
    (four.series / "z.patch").write_text("somebody's\n")
    assert refused(four, rename, "a", "z") == ["target-exists None"]
    assert refused(four, rename, "nothing", "y") == ["missing-patch nothing"]
    before = four.snapshot()
    run(four, rename, "a", "a")
    assert four.snapshot() == before


def test_names_are_found_without_their_ending_and_near_ones_are_shown(four: Bench) -> None:
    with four.session() as (_, standing):
        assert standing.index("a") == standing.index("a.patch") == 0
        with pytest.raises(PatchkitError) as refusal:
            standing.index("a.pach")
    assert "a.patch" in refusal.value.findings[0].expected
