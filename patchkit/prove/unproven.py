"""Hunks that no proof turns red without, each with its reason: proofs/<patch>.unproven.

A line each: `PATH hunk N: reason`; empty lines and those that begin with # say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchkit.errors import Finding, Where
from patchkit.prove.judge import RAISES, RED, Verdict

ALLOWED = 0.1
"""Share of a series' hunks that may be not proven."""


def reasons(path: Path | None) -> dict[str, str]:
    """The place of each hunk that is said to be not proven, with its reason. path: the file, None
    where there is none."""
    out: dict[str, str] = {}
    for line in path.read_text("utf-8", "replace").splitlines() if path is not None else ():
        place, colon, reason = line.partition(": ")
        if colon and not line.startswith("#"):
            out[place.strip()] = reason.strip()
    return out


def judge(
    patch: str, tried: Mapping[str, Verdict], why: Mapping[str, str]
) -> tuple[list[str], list[Finding]]:
    """The places that are not proven, and what is wrong with the reasons: none for a hunk that
    needs one, or one for a hunk that is proven or not there.

    A proof that breaks without a hunk says that something is wrong, not what. But where the code
    of a file that the patch touches raises without it, the hunk is needed.
    """
    left = [place for place, verdict in tried.items() if verdict.state not in (RED, RAISES)]
    wrong = [
        Finding(
            "obsolete",
            f"the proof of {patch} does not go red without {place}",
            Where(patch=patch),
            expected="a test fails by assertion without it, or a reason",
            found=f"it is {tried[place].state}, and no reason is stated",
            details=tried[place].why[:3],
            next=f"a test that needs it, or a line `{place}: reason` in "
            f"proofs/{patch.removesuffix('.patch')}.unproven",
        )
        for place in left
        if place not in why
    ]
    wrong += [
        Finding(
            "obsolete",
            f"a reason is stated for {place} of {patch}, which needs none",
            Where(patch=patch),
            expected="reasons for hunks that are not proven only",
            found="proven" if place in tried else "no such hunk",
            next=f"remove the line from proofs/{patch.removesuffix('.patch')}.unproven",
        )
        for place in why
        if place not in left
    ]
    return left, wrong


def too_many(left: int, hunks: int) -> list[Finding]:
    """A finding where more hunks of a whole series are not proven than are allowed."""
    if left <= ALLOWED * hunks:
        return []
    return [
        Finding(
            "obsolete",
            "too many hunks are not proven",
            Where(),
            expected=f"at most one in ten of {hunks}",
            found=str(left),
            next="write tests that need them, then patchkit prove --hunks",
        )
    ]
