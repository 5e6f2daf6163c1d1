"""What `prove` calls a proof that is not red and green."""

from __future__ import annotations

import pytest

from patchkit.cli.proving import finding_of
from patchkit.prove.judge import BROKEN, GREEN, RED, Verdict
from patchkit.prove.prove import NOT_PROVEN, Proven


@pytest.mark.parametrize(
    ("before", "after", "state", "name"),
    [
        (RED, "not green", NOT_PROVEN, "proof-fails"),
        ("not red", GREEN, NOT_PROVEN, "obsolete"),
        (RED, BROKEN, BROKEN, "proof-broken"),
    ],
)
def test_a_patched_tree_that_fails_is_not_called_obsolete(
    before: str, after: str, state: str, name: str
) -> None:
    found = finding_of(Proven("a.patch", state, Verdict(before, ()), Verdict(after, ()), 1.0))
    assert (found.name, found.found) == (name, f"before: {before}, after: {after}")
    assert found.next.startswith("patchkit prove a.patch --fresh")
