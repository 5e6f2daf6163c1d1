"""The frame of every verb that writes: the project held, its bases open, the series read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from patchkit.authoring.sealing import Ready, write_files, writing
from patchkit.authoring.standing import Standing, open_standing, target_pin
from patchkit.derive.base import Bases, open_bases
from patchkit.derive.project import Project, find
from patchkit.files.transaction import Recovered
from patchkit.series.folder import Series
from patchkit.series.pins import Pin
from patchkit.source import Progress, silent


@dataclass
class Session:
    """One run of a verb. project is held until the run ends; recovered: what was taken back first.

    source: what --source says, None for the project's own.
    """

    project: Project
    bases: Bases
    recovered: Recovered | None = None
    source: str | None = None

    def pin(self, name: str | None) -> Pin:
        """The pin that is meant; see `target_pin`."""
        return target_pin(self.project, name)

    def standing(self, pin: Pin, series: Series | None = None) -> Standing:
        """The series of `pin` as it stands; `series` is one that was read in another way."""
        return open_standing(self.project, pin, self.bases, source=self.source, series=series)

    def commit(self, ready: Ready, what: str, *, dry: bool = False) -> list[str]:
        """Write what is ready; the paths that changed. dry: only say which would."""
        return sorted(ready.files) if dry else write_files(self.project, ready.files, what)


@contextmanager
def session(
    start: str | os.PathLike[str],
    *,
    source: str | None = None,
    offline: bool = False,
    progress: Progress = silent,
) -> Iterator[Session]:
    """The project at or above `start`, held for one writer. Raises what `find` and `writing` do."""
    project = find(start)
    with writing(project) as recovered:
        recovered = recovered or project.recovered
        with open_bases(project, offline=offline, progress=progress) as bases:
            yield Session(project, bases, recovered, source)
