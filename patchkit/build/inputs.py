"""What a build is made from: the prepared stack of a pin, its trees, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from patchkit.build.changes import Changes, changed, listing, sort_out
from patchkit.check.installed import distribution, version_of
from patchkit.check.locked import Prepared, locked_chain, prepare
from patchkit.derive.base import Bases
from patchkit.derive.project import Project
from patchkit.derive.selection import Selection
from patchkit.engine.model import File
from patchkit.errors import Refused
from patchkit.series.lockfile import Chain, Lock
from patchkit.series.pins import Pin, Upstream
from patchkit.store.commits import Chain as Stored
from patchkit.store.repo import Store
from patchkit.store.tree import Listed
from patchkit.target.installed_state import BUILD, SERIES, State, excerpt
from patchkit.upstreams import Known, known


@dataclass(frozen=True)
class Inputs:
    """A pin's stack, applied in memory and found as locked. lock: the whole lock of the pin."""

    project: Project
    pin: Pin
    upstream: Upstream
    selection: Selection
    prepared: Prepared
    stored: Stored
    lock: Lock
    store: Store
    known: Known

    @property
    def title(self) -> str:
        """Which stack of which pin, for people."""
        return f"stack {self.selection.name} of {self.pin.name}"

    @property
    def dist(self) -> str:
        """Name of the distribution."""
        return distribution(self.upstream)

    @property
    def version(self) -> str:
        """The release of the base, "" where nothing says it."""
        return self.prepared.base.version or version_of(self.pin)

    @property
    def tree(self) -> str:
        """Id of the patched tree."""
        return self.stored.tree

    @property
    def chain(self) -> Chain:
        """The locked chain of the stack."""
        return locked_chain(self.lock, self.selection)

    @cached_property
    def base(self) -> Mapping[str, Listed]:
        """The base tree, without contents."""
        return listing(self.prepared.base.tree(self.store))

    @cached_property
    def differing(self) -> Mapping[str, Listed | None]:
        """What the stack changes."""
        return changed(self.base, listing(self.store.tree(self.tree)))

    def files(self, paths: Mapping[str, Listed]) -> dict[str, File]:
        """Files of the patched tree."""
        tree = self.store.tree(self.tree, self.prepared.base.fetch)
        tree.prefetch(paths)
        found = {path: tree.get(path) for path in paths}
        return {path: file for path, file in found.items() if file is not None}

    def always_native(self) -> Changes:
        """The changes as they are for a wheel that has every path of the package: what is native
        here is so for every base wheel."""
        from patchkit.build.changes import member_of

        members = {member_of(self.known, path) for path in self.differing}
        return sort_out(self.known, self.differing, members)

    def state(self, left_out: tuple[str, ...]) -> State:
        """The record of a built wheel, without the patches' text: nothing can be taken back from
        it, and compressed text would depend on the zlib at hand."""
        inside = [p for p in self.chain.paths if not self.known.outside_package(p)]
        stack = self.selection.stack
        return State(
            BUILD,
            SERIES,
            stack.name if stack is not None else None,
            excerpt(self.lock, self.chain, inside),
            self.known.package,
            self.known.root,
            (),
            left_out,
        )


def gather(
    project: Project, pin: Pin, selection: Selection, bases: Bases, source: str | None = None
) -> Inputs:
    """Apply the stack under its lock. Raises Refused with everything that is not as locked."""
    prepared = prepare(project, pin, selection, bases, source=source)
    if prepared.chain is None:
        raise Refused(*(f for f in prepared.findings if not f.note))
    upstream = project.pins.upstream_of(pin)
    return Inputs(
        project,
        pin,
        upstream,
        selection,
        prepared,
        prepared.chain,
        project.lock(pin.name),
        bases.store,
        known(upstream),
    )
