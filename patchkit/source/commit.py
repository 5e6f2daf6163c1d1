"""A commit of a git server as the source: that one commit, verified by its id, its tag compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from patchkit.engine.model import GITLINK, File
from patchkit.errors import EnvironmentFault, Finding, Refused
from patchkit.series.pins import Pin, Upstream
from patchkit.source.base import (
    Base,
    Progress,
    base_key,
    recalled_base,
    remember_base,
    silent,
)
from patchkit.source.pinned import SDIST
from patchkit.source.release import tag_names, version_in, version_of
from patchkit.source.remote import Server, tag_moved
from patchkit.store.address import blotted
from patchkit.store.importing import refuse_names
from patchkit.store.repo import Store
from patchkit.store.results import key_of
from patchkit.upstreams import Known, known

_MAYBE_GENERATED = ("PKG-INFO", "setup.cfg", "_version.py")
_OTHERWISE = "or leave out --source git: the sdist needs no git server"


@dataclass(frozen=True)
class GitSource:
    """The repository that pins.toml names. offline: never ask a network. asking: ask for the tag
    even where all that is needed is in the cache."""

    upstream: Upstream
    offline: bool = False
    asking: bool = False
    kind: str = "git"

    def tree(self, store: Store, pin: Pin, progress: Progress = silent) -> Base:
        """The base tree; see `Source`. `Base.drift` holds tag-moved where the tag is elsewhere.

        What the tag was when it was last asked for is kept, so that every run says the same of it;
        it is asked for again where it was elsewhere.
        """
        about = known(self.upstream)
        names = tag_names(pin.name, version_in(pin.name) or version_of(pin))
        packed = any(name.endswith(SDIST) for name in pin.files)
        server = Server(store, self.upstream, *names, otherwise=_OTHERWISE if packed else "")
        tag = _Tag(store, server, pin)
        commit = pin.commit or self._completed(tag)
        key = base_key(about, "git", commit)
        base = recalled_base(store, key, self.kind)
        notes: tuple[Finding, ...] = ()
        if base is None:
            if self.offline:
                raise EnvironmentFault(_not_cached(pin))
            progress(f"fetch {commit[:12]}", 0)
            tag.remember(server.fetch_commit(commit))
            base = self._imported(store, server, about, commit, key)
            if server.unfiltered:
                notes = (_unfiltered(server.url),)
        elif not self.offline and (self.asking or tag.last not in ("", commit)):
            try:
                tag.remember(server.tag())
            except EnvironmentFault as error:
                notes = tuple(_not_compared(finding) for finding in error.findings)
        now = tag.last or commit
        return replace(
            base,
            fetch=None if self.offline else server.fetch_blobs,
            gaps=(*base.gaps, *notes),
            drift=() if now == commit else (tag_moved(names[0], commit, now),),
        )

    def _completed(self, tag: _Tag) -> str:
        """The commit that the tag names, where the pin knows only the beginning of its id."""
        if not tag.last or not tag.pin.is_of(tag.last):
            if self.offline:
                raise EnvironmentFault(_not_cached(tag.pin))
            tag.remember(tag.server.tag())
        if not tag.last or not tag.pin.is_of(tag.last):
            raise Refused(tag_moved(tag.pin.name, tag.pin.commit_prefix, tag.last))
        return tag.last

    def _imported(self, store: Store, server: Server, about: Known, commit: str, key: str) -> Base:
        tree_id = store.tree_of(commit)
        tree = store.tree(tree_id, server.fetch_blobs)
        files = [listed for listed in tree.walk() if listed.mode != GITLINK]
        refuse_names(listed.path for listed in files)
        maybe = [f.path for f in files if f.path.rpartition("/")[2] in _MAYBE_GENERATED]
        tree.prefetch(maybe)
        generated: dict[str, File | None] = {}
        for path in maybe:
            file = tree.get(path)
            if file is not None and about.generated(path, file.data):
                generated[path] = None
        if generated:
            tree_id = store.write_tree(tree_id, generated)
        base = Base(tree_id, self.kind, name=commit, commit=commit)
        remember_base(store, key, base, store.import_tree(()))
        return base


class _Tag:
    """A pin's tag at its server. last: the commit that it named when it was last asked for; ""
    where there was none, or it never was."""

    def __init__(self, store: Store, server: Server, pin: Pin) -> None:
        self.store = store
        self.server = server
        self.pin = pin
        self._key = key_of("tag-1", server.url, *server.tags)
        known = store.cached(self._key)
        self.last = known.text if known is not None else ""

    def remember(self, commit: str) -> None:
        self.last = commit
        self.store.remember(self._key, (), commit)


def _unfiltered(url: str) -> Finding:
    return Finding(
        "network",
        f"{blotted(url)} cannot leave files out: all of the commit was fetched",
        expected="a server with uploadpack.allowFilter",
        found="the filter was ignored",
        note=True,
    )


def _not_compared(finding: Finding) -> Finding:
    return replace(
        finding,
        message=f"the tag was not compared again: {finding.message}",
        next="run the command again; the pinned commit is in patchkit's cache",
        note=True,
    )


def _not_cached(pin: Pin) -> Finding:
    return Finding(
        "network",
        f"the commit of {pin.name} is not in patchkit's cache, and --offline forbids fetching it",
        expected=f"commit {pin.commit or pin.commit_prefix}",
        found="no such commit in the cache",
        next=f"patchkit fetch --pin {pin.name} --source git, with a network",
    )
