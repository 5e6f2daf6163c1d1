"""Lines that left-out patches would have added or removed: arithmetic, no search.

A series states its lines as if every patch were applied. Where some are left out, the file at
hand is the same but for regions. Each region says: so many lines there would be, so many there
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchkit.engine.history import Run


@dataclass(frozen=True)
class Region:
    """Lines at..at+would of the file with every patch are `real` lines of the file at hand."""

    at: int
    would: int
    real: int

    @property
    def end(self) -> int:
        """The line after the last one."""
        return self.at + self.would


class Shifts:
    """The regions of one file, ascending; numbers are of the file with every patch."""

    def __init__(self, regions: Sequence[Region] = ()) -> None:
        self.regions = list(regions)

    def actual(self, starts: Iterable[int]) -> list[int]:
        """Where lines stated for the whole series stand in the file at hand. `starts` ascend."""
        out: list[int] = []
        less = i = 0
        for start in starts:
            while i < len(self.regions) and self.regions[i].end <= start:
                less += self.regions[i].would - self.regions[i].real
                i += 1
            out.append(start - less)
        return out

    def leave_out(self, changes: Sequence[Run]) -> None:
        """A patch with these runs is left out: only the file with every patch changes."""
        made = [Region(run.new, run.added, run.removed) for run in changes]
        self.regions = _joined(self.regions, changes, made, 0)

    def take(self, changes: Sequence[Run]) -> None:
        """A patch with these runs (stated for the whole series) is applied to both."""
        self.regions = _joined(self.regions, changes, [], 1)


def _joined(
    regions: Sequence[Region], changes: Sequence[Run], made: Sequence[Region], both: int
) -> list[Region]:
    """The regions after the runs: moved along, and those that a run reaches into joined with it.

    both: 1 where the runs change the file at hand as well, else 0.
    """
    out: list[Region] = []
    i = shift = 0
    for n, run in enumerate(changes):
        while i < len(regions) and _above(run, regions[i]):
            out.append(_moved(regions[i], shift))
            i += 1
        net = run.added - run.removed
        low, high = run.old, run.old + run.removed
        real = run.removed
        reached = False
        if out and out[-1].end - shift > low:  # joined already with the run before
            last = out.pop()
            before = Region(last.at - shift, last.would, last.real)
            reached, low = True, before.at
            real = before.real + max(high - before.end, 0)
            high = max(high, before.end)
        while i < len(regions) and _reaches(run, regions[i]):
            region = regions[i]
            real += region.real - region.would
            real += max(low - region.at, 0) + max(region.end - high, 0)
            low, high, reached = min(low, region.at), max(high, region.end), True
            i += 1
        if reached:
            out.append(Region(low + shift, high - low + net, max(real + both * net, 0)))
        elif made:
            out.append(made[n])
        shift += net
    out += [_moved(region, shift) for region in regions[i:]]
    return out


def _above(run: Run, region: Region) -> bool:
    """Whether a region ends before the first line that a run changes. Lines that a left-out patch
    would remove right there stand above the line that the run replaces."""
    if _reaches(run, region):
        return False
    return region.at < run.old or (run.removed > 0 and region.end == run.old)


def _reaches(run: Run, region: Region) -> bool:
    """Whether a run changes lines of a region, or lies inside it, or it inside the run."""
    stop = run.old + run.removed
    if run.old == stop:
        return region.at < run.old < region.end
    if region.at == region.end:
        return run.old < region.at < stop
    return run.old < region.end and region.at < stop


def _moved(region: Region, by: int) -> Region:
    return Region(region.at + by, region.would, region.real)
