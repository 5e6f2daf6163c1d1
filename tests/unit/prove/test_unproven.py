"""Reasons for hunks that no proof needs: they are asked for, and none may be left over."""

from __future__ import annotations

from pathlib import Path

from patchkit.prove import unproven
from patchkit.prove.judge import NOT_RED, RED, Verdict

GREEN, SEEN = Verdict(NOT_RED), Verdict(RED)


def test_reasons_are_read_by_place(tmp_path: Path) -> None:
    text = "# why\n\na/b.py hunk 2: a comment: nothing runs it\n"
    path = tmp_path / "deeper.unproven"
    path.write_text(text)
    assert unproven.reasons(path) == {"a/b.py hunk 2": "a comment: nothing runs it"}
    assert unproven.reasons(None) == {}


def test_a_hunk_that_stays_green_needs_a_reason() -> None:
    left, wrong = unproven.judge("p.patch", {"a hunk 1": SEEN, "a hunk 2": GREEN}, {})
    assert left == ["a hunk 2"]
    assert [f.message for f in wrong] == ["the proof of p.patch does not go red without a hunk 2"]
    left, wrong = unproven.judge("p.patch", {"a hunk 2": GREEN}, {"a hunk 2": "a comment"})
    assert (left, wrong) == (["a hunk 2"], [])


def test_a_reason_for_a_proven_or_missing_hunk_is_wrong() -> None:
    why = {"a hunk 1": "x", "a hunk 9": "y"}
    _, wrong = unproven.judge("p.patch", {"a hunk 1": SEEN}, why)
    assert [f.found for f in wrong] == ["proven", "no such hunk"]


def test_one_in_ten_is_allowed() -> None:
    assert unproven.too_many(3, 30) == []
    assert unproven.too_many(4, 30)[0].found == "4"
    assert unproven.too_many(0, 0) == []
