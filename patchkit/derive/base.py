"""The base trees of a project's pins, each fetched and verified at most once a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from patchkit.derive.project import Project
from patchkit.errors import Finding
from patchkit.series.pins import Pin
from patchkit.source import Base, Progress, open_source, silent
from patchkit.source.choose import DEFAULT
from patchkit.store.repo import Store

__all__ = ["Base", "Bases", "open_bases"]


@dataclass
class Bases:
    """Where base trees come from. offline: nothing is fetched."""

    project: Project
    store: Store
    offline: bool = False
    progress: Progress = silent
    _known: dict[tuple[str, str], Base] = field(default_factory=dict)

    def get(self, pin: Pin, source: str | None = None) -> Base:
        """The base of `pin`. Raises Refused(pin-mismatch), EnvironmentFault, UsageFault."""
        key = (pin.name, source or DEFAULT)
        if key not in self._known:
            upstream = self.project.pins.upstream_of(pin)
            opened = open_source(source or DEFAULT, upstream, offline=self.offline)
            self._known[key] = opened.tree(self.store, pin, self.progress)
        return self._known[key]

    def verify(self, base: Base) -> tuple[Finding, ...]:
        """Every object of the base that is here, read and hashed."""
        return base.verify(self.store)


@contextmanager
def open_bases(
    project: Project, *, offline: bool = False, progress: Progress = silent
) -> Iterator[Bases]:
    """The bases of a project, over the user's store."""
    with Store.open() as store:
        yield Bases(project, store, offline, progress)
