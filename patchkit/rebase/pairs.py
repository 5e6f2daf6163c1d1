"""Which patch of one series is which of another: by where it was carried from, else by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.derive.project import Project
from patchkit.derive.proofs import ORIGIN, Origins, origins_of
from patchkit.series.folder import Series


@dataclass(frozen=True)
class Pair:
    """A patch in both series, or in one. old, new: places in the series, from 0. aside: whether
    its place among the paired ones is another. reason: why it is not in the new one, where that
    is recorded."""

    old: int | None
    new: int | None
    aside: bool = False
    reason: str = ""

    @property
    def skipped(self) -> bool:
        """Whether it was left out for now only."""
        return _SKIPPED.fullmatch(self.reason) is not None


def pairs(project: Project, old: Series, new: Series) -> list[Pair]:
    """Every patch once, in the order of the new series; the dropped ones where they stood."""
    places = {entry.patch: place for place, entry in enumerate(old.entries)}
    found: dict[int, int] = {}  # place in old -> place in new
    known: Origins = {}
    origins = [_origin(project, origin, old.pin, known) for origin in _origins(new)]
    for by_name in (False, True):
        for at, entry in enumerate(new.entries):
            name = entry.patch if by_name else origins[at]
            place = places.get(name)
            if place is not None and place not in found and at not in found.values():
                found[place] = at
    straight = _rising([found[place] for place in sorted(found)])
    back = {at: place for place, at in found.items()}
    rows: list[Pair] = []
    told = _reasons(project, new, old.pin)
    dropped = [place for place in range(len(old.entries)) if place not in found]
    for at in range(len(new.entries)):
        place = back.get(at)
        while place is not None and dropped and dropped[0] < place:
            rows.append(_dropped(old, dropped.pop(0), told))
        rows.append(Pair(place, at, place is not None and at not in straight))
    rows += [_dropped(old, place, told) for place in dropped]
    return rows


def _dropped(old: Series, place: int, told: Mapping[str, str]) -> Pair:
    return Pair(place, None, reason=told.get(old.entries[place].patch, ""))


def _origins(series: Series) -> list[str]:
    return [header.first(ORIGIN) for header in series.headers]


def _origin(project: Project, origin: str, pin: str, known: Origins) -> str:
    """The patch of `pin` that `origin` (PIN/PATCH) comes from, however often it was carried."""
    seen: set[str] = set()
    while origin:
        at, _, patch = origin.partition("/")
        if at == pin:
            return patch
        if at in seen or at not in project.pins.pins or not project.has_series(at):
            return ""
        seen.add(at)
        if at not in known:
            known[at] = origins_of(project, at)
        origin = known[at].get(patch, "")
    return ""


def _reasons(project: Project, new: Series, old: str) -> dict[str, str]:
    """What the series between say in a comment of a patch that they leave out."""
    told: dict[str, str] = {}
    todo, seen = [new], {old}
    while todo:
        series = todo.pop(0)
        seen.add(series.pin)
        for line in series.file.lines:
            comment = _COMMENT.fullmatch(line)
            if comment is not None:
                told.setdefault(comment[1], comment[2])
        for pin in dict.fromkeys(origin.partition("/")[0] for origin in _origins(series)):
            if pin and pin not in seen and pin in project.pins.pins and project.has_series(pin):
                seen.add(pin)
                todo.append(project.series(pin, strict=False))
    return told


_COMMENT = re.compile(r"#\s*(\S+?): (.*\S)\s*")
SKIPPED = "skipped"
"""The reason, or its first word, of a patch that was left out for now."""
_SKIPPED = re.compile(rf"not on \S+: {SKIPPED}(: .*)?")


def _rising(numbers: Sequence[int]) -> set[int]:
    """The numbers of the longest rising part of the list: those that kept their order."""
    best: list[tuple[int, int]] = []  # length of the longest that ends here, place before it
    for at, number in enumerate(numbers):
        length, before = max(
            ((best[i][0] + 1, i) for i in range(at) if numbers[i] < number), default=(1, -1)
        )
        best.append((length, before))
    kept: set[int] = set()
    at = max(range(len(best)), key=lambda i: best[i][0], default=-1)
    while at >= 0:
        kept.add(numbers[at])
        at = best[at][1]
    return kept
