"""Why a patch is not on a release: what the series file says of it, release after release."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchkit.derive.base import Bases
from patchkit.prove import environment
from patchkit.prove.proofs import proofs_of
from patchkit.rebase.pairs import SKIPPED
from patchkit.rebase.plan import OBSOLETE, UPSTREAMED, Row
from patchkit.rebase.proving import on_bare
from patchkit.rebase.state import State
from patchkit.series.folder import Series

_LINE = re.compile(r"# (\S+): not on (\S+): (\S.*)")


def line(patch: str, pin: str, reason: str) -> str:
    """The comment of a series file for a patch that was left behind."""
    return f"# {patch}: not on {pin}: {reason}"


def earlier(series: Series) -> list[str]:
    """The comments of earlier rebases: they are carried on, so that no reason is lost."""
    return [text for text in series.file.lines if _LINE.match(text)]


def told_of(text: str) -> str:
    """The patch that a line of a series file gives such a reason of; "" for any other line."""
    found = _LINE.fullmatch(text)
    return found[1] if found is not None else ""


def gone(series: Series) -> dict[str, tuple[str, str]]:
    """Patch -> the release that it is not on, and why, as the series file says."""
    found = map(_LINE.fullmatch, series.file.lines)
    return {m[1]: (m[2], m[3]) for m in found if m is not None}


def of(bases: Bases, state: State, patch: str, why: str | None) -> str:
    """The reason for leaving `patch` out: the one given, else what an earlier run of its proof on
    the bare release says; "" where neither says anything."""
    given = " ".join((why or "").split())
    if given:
        return given
    project = bases.project
    proof = proofs_of(project, state.pin, project.series(state.pin)).get(patch)
    base = bases.get(project.pins.pin(state.onto))
    digest = environment.digest_of_list()
    if proof is None or on_bare(bases.store, base, proof, digest) != OBSOLETE:
        return ""
    return f"obsolete: every witness of its proof passes on the bare {state.onto}"


def left_out(reason: str, for_now: bool) -> str:
    """What the series file says of a patch that was left out by hand: for now (--skip) or not."""
    if not for_now:
        return reason or "dropped by hand"
    return f"{SKIPPED}: {reason}" if reason else SKIPPED


def every(state: State, rows: Sequence[Row]) -> dict[str, str]:
    """Patch -> reason, of all that were left out by hand or taken by a release."""
    found = dict(state.left)
    for row in rows:
        for cell in row.cells:
            if cell.text == UPSTREAMED:
                found.setdefault(cell.patch, f"upstreamed in {row.pin}")
    return found
