"""What was promised of the speed, and whether the figures keep it."""

from __future__ import annotations

from dataclasses import dataclass

from bench.ours import CHANGED, FIRST, HELP, TYPER, UNCHANGED, VERSION
from bench.peers import AM, FLOOR, QUILT
from bench.results import Results

MOST_MB = 200.0


@dataclass(frozen=True)
class Goal:
    """what: in words. found: the figure, None where it was not measured. most: the limit."""

    what: str
    found: float | None
    most: float

    @property
    def kept(self) -> bool | None:
        """Whether the figure is within the limit; None where there is none."""
        return None if self.found is None else self.found <= self.most


def goals(results: Results, n: int = 500) -> list[Goal]:
    """Every promise, with the figures of `n` patches."""

    def ratio(part: str, one: str, two: str, size: int = n) -> float | None:
        try:
            above, below = results.of(part, one, size), results.of(part, two, size)
        except KeyError:
            return None
        return above.above_s / below.above_s if not (above.note or below.note) else None

    ours = [each for each in results.rows("patches") if each.tool.startswith(FIRST)]
    return [
        Goal(f"the first time, of {AM.name}", ratio("patches", FIRST, AM.name), 1 / 10),
        Goal(f"the first time, of {QUILT.name}", ratio("patches", FIRST, QUILT.name), 1 / 25),
        Goal("the first time, of the floor", ratio("patches", FIRST, FLOOR.name), 2.0),
        Goal("last patch changed, of the first time", ratio("patches", CHANGED, FIRST), 1 / 3),
        Goal("unchanged, of the first time", ratio("patches", UNCHANGED, FIRST), 1 / 5),
        Goal("patchkit --version, of import typer", ratio("start", VERSION, TYPER, 0), 3.0),
        Goal("patchkit --help, of import typer", ratio("start", HELP, TYPER, 0), 3.0),
        Goal("peak memory, MB", max((each.rss_mb for each in ours), default=None), MOST_MB),
    ]
