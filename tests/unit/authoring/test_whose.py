"""A commit that lost its Patch-Name, and a patch that was renamed under an open work tree."""

from __future__ import annotations

import pytest

from patchkit.authoring.arrange import rename
from patchkit.authoring.form import HEADER, NEW, REFRESHED
from patchkit.authoring.proofs import proof_files
from patchkit.errors import Finding, Refused, UsageFault
from patchkit.series.header import parse_header
from tests.unit.authoring.making import Bench
from tests.unit.authoring.test_commits import GATES, LANES, order, rebase, three

__all__ = ["three"]


def refused(bench: Bench) -> list[Finding]:
    before = bench.snapshot()
    with pytest.raises(Refused) as refusal:
        bench.from_commits()
    assert bench.snapshot() == before
    return list(refusal.value.findings)


def reword(bench: Bench, name: str, message: str) -> None:
    """git rebase -i base, another message for the commit of patch `name`; the others stay."""
    lines = [f"pick {{{n}}}" for n in ("a", "b", "c")]
    at = "abc".index(name)
    lines.insert(at + 1, f'exec git commit -q --amend -m "{message}"')
    rebase(bench, "\n".join(lines))


def rename_patch(bench: Bench, old: str, new: str) -> None:
    with bench.session() as (run, standing):
        run.commit(rename(standing, old, new), "rename")


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_reworded_commit_without_its_name_is_known_by_what_it_does(
    three: Bench, name: str
) -> None:
    before = order(three)
    reword(three, name, "Say it in words")
    states = three.from_commits()
    assert states == {f"{n}.patch": HEADER if n == name else "unchanged" for n in "abc"}
    assert order(three) == before
    assert parse_header(three.patches()[f"{name}.patch"]).subject == "Say it in words"
    assert three.check() == []


def test_also_where_it_stands_on_another_tree(three: Bench) -> None:
    rebase(three, 'pick {c}\npick {a}\npick {b}\nexec git commit -q --amend -m "Thirty"')
    assert three.from_commits()["b.patch"] == HEADER
    assert order(three) == ["c.patch", "a.patch", "b.patch #+fast"]


def test_what_is_not_known_by_its_effect_is_asked_and_the_way_out_works(three: Bench) -> None:
    three.edit("b")
    three.change(LANES, "line thirty\n", "thirty\n")
    three.git("commit", "-qa", "--amend", "-m", "Say thirty")
    (finding,) = refused(three)
    assert finding.name == "missing-patch"
    assert "does not say which patch it is, and no commit is b.patch" in finding.message
    assert "`Patch-Name: b.patch`" in finding.next
    three.git("commit", "-q", "--amend", "-m", "Say thirty\n\nPatch-Name: b.patch")
    assert three.from_commits()["b.patch"] == REFRESHED
    assert "b.patch #+fast" in order(three)


def test_a_new_commit_in_the_place_of_one_that_was_taken_out_says_its_own_name(
    three: Bench,
) -> None:
    three.git("reset", "-q", "--hard", "HEAD~1")
    three.change(GATES, "gate 20\n", "gate twenty\n")
    three.git("commit", "-qam", "Twenty")
    assert "no commit is c.patch" in refused(three)[0].message
    three.git("commit", "-q", "--amend", "-m", "Twenty\n\nPatch-Name: twenty.patch")
    states = three.from_commits()
    assert (states["twenty.patch"], states["c.patch"]) == (NEW, "dropped")


def test_a_reworded_commit_below_a_new_patch_does_not_take_its_name(three: Bench) -> None:
    three.new("d", guard="slow")
    three.change(GATES, "gate 20\n", "gate twenty\n")
    three.git("commit", "-qam", "D")
    lines = [
        "pick {a}",
        "pick {b}",
        'exec git commit -q --amend -m "Thirty"',
        "pick {c}",
        "pick {d}",
    ]
    rebase(three, "\n".join(lines))
    assert three.from_commits()["d.patch"] == NEW
    assert order(three) == ["a.patch", "b.patch #+fast", "c.patch", "d.patch #+slow"]


def test_another_name_in_the_trailer_renames_and_keeps_guard_fields_and_proof(
    three: Bench,
) -> None:
    proofs = three.series / "proofs"
    proofs.mkdir()
    (proofs / "test_b.py").write_text("def test_b() -> None: ...\n")
    assert proof_files(three.series, "b.patch")
    reword(three, "b", 'B" -m "Patch-Name: bee.patch')
    old = parse_header(three.patches()["b.patch"])
    states = three.from_commits()
    assert states["b.patch"] == "renamed bee.patch"
    assert order(three) == ["a.patch", "bee.patch #+fast", "c.patch"]
    assert parse_header(three.patches()["bee.patch"]).fields == old.fields
    assert "b.patch" not in three.patches()
    assert [p.name for p in proofs.iterdir()] == ["test_bee.py"]
    assert three.check() == []


def test_a_guard_is_taken_away_by_the_word_none(three: Bench) -> None:
    reword(three, "b", 'B" -m "Patch-Name: b.patch')
    three.from_commits()
    assert order(three)[1] == "b.patch #+fast"
    three.edit()
    reword(three, "b", 'B" -m "Patch-Name: b.patch" -m "Guard: none')
    three.from_commits()
    assert order(three) == ["a.patch", "b.patch", "c.patch"]
    three.edit("b")
    three.refresh(guard="slow")
    assert order(three)[1] == "b.patch #+slow"
    three.refresh(guard="none")
    assert order(three)[1] == "b.patch"
    with pytest.raises(UsageFault):
        three.refresh(guard="")


def test_a_patch_that_was_renamed_meanwhile_is_refreshed_under_its_name_of_now(
    three: Bench,
) -> None:
    three.edit("b")
    three.change(LANES, "line thirty\n", "thirty\n")
    rename_patch(three, "b", "bee")
    assert three.refresh()["bee.patch"] == REFRESHED
    assert order(three) == ["a.patch", "bee.patch #+fast", "c.patch"]
    assert three.check() == []


@pytest.mark.parametrize("edited", [False, True])
def test_so_do_its_commits(three: Bench, edited: bool) -> None:
    three.edit("b")
    rename_patch(three, "b", "bee")
    rename_patch(three, "a", "ay")
    if edited:
        three.change(LANES, "line thirty\n", "thirty\n")
        three.git("commit", "-qa", "--amend", "--no-edit")
    states = three.from_commits()
    assert order(three) == ["ay.patch", "bee.patch #+fast", "c.patch"]
    assert states["bee.patch"] == (REFRESHED if edited else "unchanged")
    assert three.check() == []
