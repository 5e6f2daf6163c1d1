"""The base trees of a project's pins, each fetched and verified at most once a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from patchkit.derive.project import Project
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.series.pins import FILE, Pin
from patchkit.source import Base, Progress, open_source, silent
from patchkit.source.choose import DEFAULT
from patchkit.source.pinned import SDIST
from patchkit.store.repo import Store

__all__ = ["Base", "Bases", "open_bases"]


@dataclass
class Bases:
    """Where base trees come from. offline: nothing is fetched. asking: a git server is asked for
    the tag even where all is in the cache."""

    project: Project
    store: Store
    offline: bool = False
    progress: Progress = silent
    asking: bool = False
    _known: dict[tuple[str, str], Base] = field(default_factory=dict)

    def get(self, pin: Pin, source: str | None = None) -> Base:
        """The base of `pin`. Raises Refused(pin-mismatch), EnvironmentFault, UsageFault."""
        spec = source or default_source(self.project, pin)
        key = (pin.name, spec)
        if key not in self._known:
            upstream = self.project.pins.upstream_of(pin)
            opened = open_source(spec, upstream, offline=self.offline, asking=self.asking)
            self._known[key] = opened.tree(self.store, pin, self.progress)
        return self._known[key]

    def verify(self, base: Base) -> tuple[Finding, ...]:
        """Every object of the base that is here, read and hashed."""
        return base.verify(self.store)


def default_source(project: Project, pin: Pin) -> str:
    """Where the base of `pin` comes from when no --source says: what pins.toml says, else the
    sdist; for a pin that states a commit and no sdist, the git server.

    Raises EnvironmentFault(disk) where pins.toml names a folder that is not there.
    """
    upstream = project.pins.upstream_of(pin)
    if not upstream.source and upstream.git and pin.commit and not _has_sdist(pin):
        return "git"
    if upstream.source in ("", "sdist", "git"):
        return upstream.source or DEFAULT
    at = os.path.normpath(os.path.join(project.folder, upstream.source.replace("{pin}", pin.name)))
    if not os.path.exists(at):
        raise EnvironmentFault(
            Finding(
                "disk",
                f"the source of {upstream.name} that {FILE} names is not there",
                Where(file=at),
                expected=f'a folder: [upstreams.{upstream.name}] says source = "{upstream.source}"',
                found="nothing",
                next="put it there, mend the line, or name another with --source",
            )
        )
    return at


def _has_sdist(pin: Pin) -> bool:
    return any(name.endswith(SDIST) for name in pin.files)


@contextmanager
def open_bases(
    project: Project,
    *,
    offline: bool = False,
    progress: Progress = silent,
    asking: bool = False,
) -> Iterator[Bases]:
    """The bases of a project, over the user's store."""
    with Store.open() as store:
        yield Bases(project, store, offline, progress, asking)
