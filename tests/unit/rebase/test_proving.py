"""What a proof says of a patch on another release."""

from __future__ import annotations

import pytest

from patchkit.prove.judge import Seen
from patchkit.rebase.plan import CLEAN, CONFLICT, DROPPED, Cell
from patchkit.rebase.proving import said


def seen(trouble: str = "", **outcomes: str) -> Seen:
    """A run: w… are witnesses; "error" is a failure that no assertion made."""
    tests = {
        name: {
            "witness": name.startswith("w"),
            "outcome": "failed" if outcome == "error" else outcome,
            "by_assertion": outcome == "failed",
            "needs": "",
        }
        for name, outcome in outcomes.items()
    }
    return Seen(tests, trouble, 1.0)


def cell(text: str = CLEAN) -> Cell:
    return Cell("a.patch", "v2.0", text)


@pytest.mark.parametrize(
    ("bare", "after", "text", "word"),
    [
        (seen(w1="passed", w2="passed"), seen(w1="passed"), CLEAN, "obsolete"),
        # A test that is no witness asks how the patch does it, not whether it is done.
        (seen(w1="passed", other="failed"), None, CONFLICT, "obsolete"),
        (seen(w1="passed", other="error"), None, CONFLICT, "obsolete"),
        (seen(w1="passed", w2="failed"), None, CONFLICT, "not proven here"),
        (seen(w1="passed", w2="error"), None, CONFLICT, "proof-broken"),
        (seen("cannot import", w1="passed"), None, CONFLICT, "proof-broken"),
        (seen(other="passed"), None, CONFLICT, "proof-broken"),
        (seen(w1="failed"), seen(w1="passed"), CLEAN, "proven"),
        (seen(w1="failed"), seen(w1="failed"), CLEAN, "proof-fails"),
        (seen(w1="failed"), seen("cannot import"), CLEAN, "proof-broken"),
        (None, seen(w1="passed"), CLEAN, "proven"),
        (seen(w1="failed"), None, CLEAN, "not proven here"),
        (seen(w1="passed"), None, DROPPED, "not proven here"),
    ],
)
def test_the_word_for_a_cell(bare: Seen | None, after: Seen | None, text: str, word: str) -> None:
    assert said(cell(text), bare, after) == word
