"""What a run of a proof shows: red, green, or broken."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

RED, NOT_RED, GREEN, NOT_GREEN, BROKEN = "red", "not red", "green", "not green", "broken"
RAISES = "raises"
"""Of a smaller change: no test fails by assertion, but the product's own code, in a file that the
patch touches, ends one with an error."""


@dataclass(frozen=True)
class Seen:
    """One run of a proof on one tree.

    tests: node id -> what the plugin wrote (witness, outcome, by_assertion, error, …). trouble:
    why there is no report, or what went wrong while collecting; "" where nothing did. seconds:
    wall time. lost: there is no report, which may be the machine's fault: not to be kept. taken:
    what it took from the tree (alike.Taken), where that was watched. raised_in: the file of the
    tree that kept the proof from being collected.
    """

    tests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trouble: str = ""
    seconds: float = 0.0
    lost: bool = False
    taken: str = ""
    raised_in: str = ""

    def witnesses(self) -> list[str]:
        """Names of the witnesses that were collected."""
        return [name for name, row in self.tests.items() if row["witness"]]


@dataclass(frozen=True)
class Verdict:
    """state: red, not red, green, not green or broken. why: a line for each test that is the
    reason, with its error."""

    state: str
    why: tuple[str, ...] = ()


def red(seen: Seen) -> Verdict:
    """Red: every witness was collected and failed by assertion in its call phase."""
    if seen.trouble:
        return Verdict(BROKEN, (seen.trouble,))
    witnesses = seen.witnesses()
    if not witnesses:
        return Verdict(BROKEN, ("no test is marked witness",))
    stray = []
    passed = []
    for name in witnesses:
        row = seen.tests[name]
        if row["outcome"] == "passed":
            passed.append(f"{name} passes")
        elif row["outcome"] != "failed" or not row.get("by_assertion"):
            stray.append(f"{name}: {row['outcome']}, not by assertion: {_said(row)}")
    if stray:
        return Verdict(BROKEN, tuple(stray))
    return Verdict(NOT_RED, tuple(passed)) if passed else Verdict(RED)


def green(seen: Seen) -> Verdict:
    """Green: everything passes; a skip needs a `needs` mark."""
    if seen.trouble:
        return Verdict(BROKEN, (seen.trouble,))
    if not seen.witnesses():
        return Verdict(BROKEN, ("no test is marked witness",))
    why = []
    for name, row in seen.tests.items():
        if row["outcome"] == "skipped" and row["needs"]:
            continue
        if row["outcome"] != "passed":
            why.append(f"{name}: {row['outcome']}: {_said(row)}")
    return Verdict(NOT_GREEN, tuple(why)) if why else Verdict(GREEN)


def obsolete(seen: Seen) -> Verdict:
    """Of a tree without the patch: GREEN where every witness passes, so that nothing is left to
    do; RED where one fails by assertion; BROKEN where a witness cannot be judged."""
    if seen.trouble or not seen.witnesses():
        return Verdict(BROKEN, (seen.trouble or "no test is marked witness",))
    failed, stray = [], []
    for name in seen.witnesses():
        row = seen.tests[name]
        if row["outcome"] == "failed" and row.get("by_assertion"):
            failed.append(f"{name}: {_said(row)}")
        elif row["outcome"] != "passed":
            stray.append(f"{name}: {row['outcome']}, not by assertion: {_said(row)}")
    if stray:
        return Verdict(BROKEN, tuple(stray))
    return Verdict(RED, tuple(failed)) if failed else Verdict(GREEN)


def variant(seen: Seen, touched: Container[str] = ()) -> Verdict:
    """Of a smaller change (a hunk left out, a mutant): RED where a test fails by assertion;
    RAISES where none does and the code of a touched file ends one with an error; BROKEN where
    something else goes wrong; NOT_RED where nothing does."""
    if seen.trouble:
        return Verdict(RAISES if seen.raised_in in touched else BROKEN, (seen.trouble,))
    raises: list[str] = []
    stray: list[str] = []
    for name, row in seen.tests.items():
        if row["outcome"] == "failed" and row.get("by_assertion"):
            return Verdict(RED, (f"{name}: {_said(row)}",))
        if row["outcome"] == "failed":
            own = row.get("raised_in", "") in touched
            (raises if own else stray).append(f"{name}: {_said(row)}")
    if raises:
        return Verdict(RAISES, tuple(raises))
    return Verdict(BROKEN, tuple(stray)) if stray else Verdict(NOT_RED)


def _said(row: Mapping[str, Any]) -> str:
    return str(row.get("line") or row.get("reason") or "")[:300]
