"""Several series of one project beside each other: what became of each patch, pin by pin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.report.gather import PatchPage, PinPage


@dataclass(frozen=True)
class Place:
    """A patch in one series. patch: None where it is not there; since, why: what the series file
    says of that, "" for nothing."""

    pin: str
    patch: PatchPage | None = None
    since: str = ""
    why: str = ""


@dataclass(frozen=True)
class Life:
    """One patch over all pins: its name and subject in the latest series that has it."""

    name: str
    guard: str
    subject: str
    places: tuple[Place, ...]


def lives(pages: Sequence[PinPage]) -> tuple[Life, ...]:
    """A row for each patch, in the order of the first series that has it. pages: oldest first."""
    rows: list[dict[str, PatchPage]] = []
    row_of: dict[tuple[str, str], int] = {}
    for page in pages:
        for patch in page.patches:
            before = next((row_of[p] for p in reversed(patch.history[:-1]) if p in row_of), None)
            at = len(rows) if before is None else before
            if before is None:
                rows.append({})
            rows[at][page.pin.name] = patch
            row_of[page.pin.name, patch.name] = at
    return tuple(_life(row, pages) for row in rows)


def _life(row: dict[str, PatchPage], pages: Sequence[PinPage]) -> Life:
    last = list(row.values())[-1]
    names = {patch.name for patch in row.values()}
    places = []
    for page in pages:
        patch = row.get(page.pin.name)
        since, why = next((page.gone[n] for n in sorted(names) if n in page.gone), ("", ""))
        places.append(Place(page.pin.name, patch, *(("", "") if patch else (since, why))))
    return Life(last.name, last.entry.guard or "", last.header.description, tuple(places))
