"""Plain git in the work tree: amend, rebase -i, fixups and splits come back as patches."""

from __future__ import annotations

import pytest

from patchkit.authoring.commits import merged_order, refresh_commits
from patchkit.authoring.form import HEADER, NEW, REFRESHED, RENUMBERED, UNCHANGED
from patchkit.authoring.workplace import read_point
from patchkit.errors import Refused
from patchkit.series.header import parse_header
from tests.unit.authoring.making import AUTHOR, MOMENT, Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"


@pytest.fixture
def three(bench: Bench) -> Bench:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 30\n", "line thirty\n"), guard="fast")
    bench.add_patch("c", (GATES, "gate 9\n", "gate nine\n"))
    bench.edit()
    return bench


def refused(bench: Bench) -> list[str]:
    before = bench.snapshot()
    with pytest.raises(Refused) as refusal:
        bench.from_commits()
    assert bench.snapshot() == before
    return [f.name for f in refusal.value.findings]


def order(bench: Bench) -> list[str]:
    return (bench.series / "series").read_text().splitlines()


def rebase(bench: Bench, todo: str) -> None:
    """git rebase -i base, with this to-do list; {a} is the commit of the patch a."""
    commits = dict(
        reversed(line.split(" ", 1)) for line in bench.git("log", "--format=%h %s").splitlines()
    )
    names = {name.lower(): commit for name, commit in commits.items() if len(name) == 1}
    script = bench.root / "todo.sh"
    lines = "\\n".join(todo.format(**names).split("\n"))
    script.write_text(f"#!/bin/sh\nprintf '{lines}\\n' > \"$1\"\n")
    script.chmod(0o755)
    bench.git("rebase", "-i", "base", GIT_SEQUENCE_EDITOR=str(script))
    script.unlink()


def test_commits_that_nobody_touched_change_no_byte(three: Bench) -> None:
    before = three.snapshot()
    assert set(three.from_commits().values()) == {UNCHANGED}
    assert three.snapshot() == before


def test_an_amended_commit_is_the_patch_with_its_name_and_guard(three: Bench) -> None:
    three.edit("b")
    three.change(LANES, "line thirty\n", "thirty\n")
    three.git("commit", "-qa", "--amend", "-m", "Say it\n\nWhy.\n\nPatch-Name: b.patch")
    assert three.from_commits() == {
        "a.patch": UNCHANGED,
        "b.patch": REFRESHED,
        "c.patch": UNCHANGED,
    }
    header = parse_header(three.patches()["b.patch"])
    assert (header.subject, header.body, header.author) == ("Say it", "Why.", AUTHOR)
    assert order(three) == ["a.patch", "b.patch #+fast", "c.patch"]
    assert three.check() == []


def test_a_new_message_alone_changes_only_the_header(three: Bench) -> None:
    diff = three.patches()["c.patch"].partition(b"---\ndiff")[2]
    three.git("commit", "--amend", "-q", "-m", "Count gates\n\nWhy.\n\nPatch-Name: c.patch")
    assert three.from_commits()["c.patch"] == HEADER
    after = three.patches()["c.patch"]
    assert after.partition(b"---\ndiff")[2] == diff
    assert b"Last-Update: 2031-01-31" in after
    assert three.check() == []


def test_rebase_reorders_and_drops(three: Bench) -> None:
    rebase(three, "pick {c}\npick {b}")
    states = three.from_commits()
    assert states["a.patch"] == "dropped"
    assert order(three) == ["c.patch", "b.patch #+fast"]
    assert not (three.series / "a.patch").exists()
    assert three.check() == []


def proofs(bench: Bench, *names: str) -> dict[str, bytes]:
    """Proofs of these patches, each with a mutant, under the lock; what is there now."""
    folder = bench.series / "proofs"
    for name in names:
        (folder / f"{name}.mutants").mkdir(parents=True)
        (folder / f"test_{name}.py").write_text(f"def test_{name}() -> None: ...\n")
        (folder / f"{name}.mutants" / "one.diff").write_text(f"{name}\n")
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def test_the_proof_of_a_dropped_patch_goes_with_it(three: Bench) -> None:
    before = proofs(three, "a", "b")
    rebase(three, "pick {c}\npick {b}")
    assert three.from_commits()["a.patch"] == "dropped"
    assert proofs(three) == {path: before[path] for path in ("test_b.py", "b.mutants/one.diff")}
    assert three.check() == []


def test_the_proof_of_a_folded_patch_is_that_of_the_other(three: Bench) -> None:
    before = proofs(three, "b")
    rebase(three, "pick {a}\nsquash {b}\npick {c}")
    assert three.from_commits()["b.patch"] == "folded into a.patch"
    assert proofs(three) == {
        "test_a.py": before["test_b.py"],
        "a.mutants/one.diff": before["b.mutants/one.diff"],
    }
    assert three.check() == []


def test_two_proofs_of_a_folded_patch_stay_and_are_said(three: Bench) -> None:
    before = proofs(three, "a", "b")
    rebase(three, "pick {a}\nsquash {b}\npick {c}")
    with three.session() as (_, standing):
        point = read_point(str(three.tree))
        assert point is not None
        done = refresh_commits(standing, point, str(three.tree), MOMENT)
    (note,) = [f for f in done.ready.findings if f.name == "unused"]
    assert note.note
    assert note.where.file == "series/v1/proofs/test_b.py"
    assert "move its tests into series/v1/proofs/test_a.py" in note.next
    three.from_commits()
    assert proofs(three) == before


def test_a_squashed_patch_is_folded_and_said(three: Bench) -> None:
    rebase(three, "pick {a}\nsquash {b}\npick {c}")
    states = three.from_commits()
    assert states["b.patch"] == "folded into a.patch"
    assert order(three) == ["a.patch", "c.patch"]
    assert b"+line thirty" in three.patches()["a.patch"]
    assert b"Patch-Name" not in three.patches()["a.patch"]
    assert three.check() == []


def test_fixups_are_folded_into_what_they_are_for(three: Bench) -> None:
    three.change(LANES, "line five\n", "line five\nand a half\n")
    three.git("commit", "-qam", "fixup! A")
    three.change(LANES, "line thirty\n", "thirty\n")
    three.git("commit", "-qam", "fixup! fixup! B")
    assert three.from_commits() == {
        "a.patch": REFRESHED,
        "b.patch": REFRESHED,
        "c.patch": UNCHANGED,
    }
    assert b"+and a half" in three.patches()["a.patch"]
    assert b"+thirty" in three.patches()["b.patch"]
    assert three.check() == []
    assert three.git("status", "--porcelain") == ""


def test_a_fixup_that_cannot_go_back_is_refused_with_the_place(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line five\n", "line V\n"))
    bench.edit()
    bench.change(LANES, "line V\n", "line v\n")
    bench.git("commit", "-qam", "fixup! A")
    assert "conflict" in refused(bench)


def test_a_fixup_for_nothing_is_refused(three: Bench) -> None:
    three.change(LANES, "line 20\n", "x\n")
    three.git("commit", "-qam", "fixup! something else")
    assert refused(three) == ["missing-patch"]


def test_a_commit_without_a_name_is_a_new_patch(three: Bench) -> None:
    three.change(LANES, "line 20\n", "line twenty\n")
    three.git("commit", "-qam", "[Core] Say twenty\n\nWhy.\n\nGuard: slow\nDrop-When: never known")
    assert three.from_commits()["core-say-twenty.patch"] == NEW
    header = parse_header(three.patches()["core-say-twenty.patch"])
    assert header.subject == "Core: Say twenty"
    assert header.body == "Why."
    assert header.first("Drop-When") == "never known"
    assert header.first("Last-Update") == "2031-01-31"
    assert order(three)[-1] == "core-say-twenty.patch #+slow"
    assert three.check() == []


def test_a_split_commit_under_one_name_stays_one_patch(three: Bench) -> None:
    three.git("reset", "-q", "--soft", "HEAD~1")
    three.git("commit", "-qm", "C\n\nPatch-Name: c.patch")
    three.change(GATES, "gate 20\n", "gate twenty\n")
    three.git("commit", "-qam", "more\n\nPatch-Name: c.patch")
    assert three.from_commits()["c.patch"] == REFRESHED
    assert b"+gate twenty" in three.patches()["c.patch"]


def test_the_first_commit_of_a_new_tree_is_the_new_patch(three: Bench) -> None:
    three.new("d", guard="fast")
    three.change(GATES, "gate 20\n", "gate twenty\n")
    three.git("commit", "-qam", "Say twenty")
    assert three.from_commits()["d.patch"] == NEW
    assert order(three)[-1] == "d.patch #+fast"
    assert three.check() == []
    assert set(three.from_commits().values()) == {UNCHANGED}


def test_later_patches_that_were_not_in_the_tree_are_carried(three: Bench) -> None:
    three.edit("a")
    three.change(LANES, "line five\n", "line five\nand a half\n")
    three.git("commit", "-qa", "--amend", "--no-edit")
    assert three.from_commits() == {
        "a.patch": REFRESHED,
        "b.patch": RENUMBERED,
        "c.patch": UNCHANGED,
    }
    assert three.check() == []


def test_uncommitted_changes_merges_and_foreign_roots_are_refused(three: Bench) -> None:
    three.change(LANES, "line 20\n", "x\n")
    assert refused(three) == ["foreign-edit"]
    three.git("checkout", "-q", "--", LANES)
    three.git("checkout", "-q", "-b", "side", "HEAD~1")
    three.change(LANES, "line 20\n", "x\n")
    three.git("commit", "-qam", "side")
    three.git("merge", "-q", "patchkit")
    assert refused(three) == ["unsupported"]
    three.git("checkout", "-q", "--orphan", "root")
    three.git("commit", "-qm", "all anew")
    assert refused(three) == ["unsupported"]
    three.git("checkout", "-q", "patchkit")
    assert set(three.from_commits().values()) == {UNCHANGED}


def test_one_name_in_two_places_is_refused(three: Bench) -> None:
    three.change(LANES, "line 20\n", "x\n")
    three.git("commit", "-qam", "again\n\nPatch-Name: a.patch")
    assert refused(three) == ["duplicate-entry"]


@pytest.mark.parametrize(
    ("made", "count", "expected"),
    [
        (["a", "b"], 2, ["a", "b", "c", "d"]),
        (["b", "a"], 2, ["b", "a", "c", "d"]),
        (["a"], 2, ["a", "c", "d"]),
        (["a", "x", "b"], 2, ["a", "x", "b", "c", "d"]),
        (["a", "b", "d", "c"], 2, ["a", "b", "d", "c"]),
        (["x"], 0, ["x", "a", "b", "c", "d"]),
        (["a", "x", "d"], 1, ["a", "x", "b", "c", "d"]),
        ([], 2, ["c", "d"]),
    ],
)
def test_patches_that_were_not_in_the_tree_stand_behind_what_they_stood_behind(
    made: list[str], count: int, expected: list[str]
) -> None:
    assert merged_order(["a", "b", "c", "d"], made, count) == expected
