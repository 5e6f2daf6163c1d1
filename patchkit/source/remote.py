"""A git server as the source: exactly one commit, verified by its id.

Trees come at once, blobs when they are needed, in batches: a check of a series fetches a few
megabytes of a repository of hundreds. A repository of its own holds what git wants to remember of
a server (shallow, promisor); the objects go into the store, which knows of no server and so never
fetches behind our back.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchkit.engine.model import GITLINK, File
from patchkit.errors import EnvironmentFault, Finding, Refused
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_file
from patchkit.files.lock import locked
from patchkit.series.pins import Pin, Upstream
from patchkit.source.base import (
    Base,
    Progress,
    base_key,
    recalled_base,
    remember_base,
    silent,
)
from patchkit.store import git
from patchkit.store.address import blotted
from patchkit.store.cache import REMOTES
from patchkit.store.repo import Store
from patchkit.upstreams import Known, known

_PER_REQUEST = 2000
"""Blobs asked for in one request."""
_MAYBE_GENERATED = ("PKG-INFO", "setup.cfg", "_version.py")
_WAIT = 3600.0
_QUIET = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
_NO_BLOBS = ("--filter=blob:none",)
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_LOCKS = ("shallow.lock", "config.lock", "packed-refs.lock")


@dataclass(frozen=True)
class GitSource:
    """The repository that pins.toml names. offline: never ask a network."""

    upstream: Upstream
    offline: bool = False
    kind: str = "git"

    def tree(self, store: Store, pin: Pin, progress: Progress = silent) -> Base:
        """The base tree; see `Source`. `Base.drift` holds tag-moved where the tag is elsewhere."""
        about = known(self.upstream)
        server = Server(store, self.upstream, pin.name)
        drift: tuple[Finding, ...] = ()
        commit = pin.commit
        if not commit:
            commit = self._completed(server, pin)
        key = base_key(about, "git", commit)
        base = recalled_base(store, key, self.kind)
        if base is None:
            if self.offline:
                raise EnvironmentFault(_not_cached(pin))
            progress(f"fetch {commit[:12]}", 0)
            drift = server.fetch_commit(commit)
            base = self._imported(store, server, about, commit, key)
            if server.unfiltered:
                base = replace(base, gaps=(*base.gaps, _unfiltered(server.url)))
        fetch = None if self.offline else server.fetch_blobs
        return replace(base, fetch=fetch, drift=drift)

    def _completed(self, server: Server, pin: Pin) -> str:
        """The commit that the tag names, where the pin knows only the beginning of its id."""
        if self.offline:
            raise EnvironmentFault(_not_cached(pin))
        found = server.tag()
        if not found or not pin.is_of(found):
            raise Refused(_tag_moved(pin.name, pin.commit_prefix, found))
        return found

    def _imported(self, store: Store, server: Server, about: Known, commit: str, key: str) -> Base:
        tree_id = store.tree_of(commit)
        tree = store.tree(tree_id, server.fetch_blobs)
        generated: dict[str, File | None] = {}
        for listed in tree.walk():
            name = listed.path.rpartition("/")[2]
            if name in _MAYBE_GENERATED and listed.mode != GITLINK:
                file = tree.get(listed.path)
                if file is not None and about.generated(listed.path, file.data):
                    generated[listed.path] = None
        if generated:
            tree_id = store.write_tree(tree_id, generated)
        base = Base(tree_id, self.kind, name=commit, commit=commit)
        remember_base(store, key, base, store.import_tree(()))
        return base


class Server:
    """One upstream's repository, asked for a commit, a tag or blobs.

    unfiltered: whether it sent blobs that it was asked to leave out. Every method raises
    EnvironmentFault(network) where it does not answer.
    """

    def __init__(self, store: Store, upstream: Upstream, tag: str) -> None:
        if not upstream.git:
            raise Refused(
                Finding(
                    "bad-pins",
                    f"upstream {upstream.name} has no git address",
                    expected=f'git = "https://…" in [upstreams.{upstream.name}]',
                    next="mend pins.toml, or leave out --source git",
                )
            )
        self.store = store
        self.url = upstream.git
        self.tag_name = tag
        name = hashlib.sha256(self.url.encode()).hexdigest()[:16]
        self.git_dir = os.path.join(store.root, REMOTES, f"{name}.git")
        self.unfiltered = False
        self._lock = f"{self.git_dir}.lock"

    def tag(self) -> str:
        """The commit that the tag names now; "" where there is no such tag."""
        with locked(self._lock, wait=_WAIT):
            return self._tag()

    def _tag(self) -> str:
        ref = f"refs/tags/{self.tag_name}"
        out = self._git(["ls-remote", "--", git.REMOTE, ref, f"{ref}^{{}}"])
        lines: dict[str, str] = {}
        for line in out.decode("utf-8", "replace").splitlines():
            oid, _, name = line.partition("\t")
            lines[name] = oid
        return lines.get(f"{ref}^{{}}") or lines.get(ref) or ""

    def find(self, name: str) -> tuple[str, str]:
        """("tags" or "heads", commit) that a tag or branch `name` leads to now; ("", "") for none.

        A tag comes first, as in git.
        """
        if not _REF.fullmatch(name) or ".." in name:
            return "", ""
        refs = (f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/heads/{name}")
        with locked(self._lock, wait=_WAIT):
            out = self._git(["ls-remote", "--", git.REMOTE, *refs])
        rows = (line.partition("\t") for line in out.decode("utf-8", "replace").splitlines())
        lines = {ref: oid for oid, _, ref in rows}
        found = next((ref for ref in refs if ref in lines), None)
        return ("", "") if found is None else (found.split("/")[1], lines[found])

    def fetch_commit(self, commit: str) -> tuple[Finding, ...]:
        """Bring the commit with all its trees; give tag-moved where the tag is another commit.

        A server that serves no unadvertised id is asked for the tag; one that cannot leave blobs
        out sends them all. Raises Refused(tag-moved) where only the tag can be had and it is not
        the pinned commit.
        """
        with locked(self._lock, wait=_WAIT):
            moved = self._moved(commit)
            try:
                self._fetch([commit])
            except EnvironmentFault as error:
                if "not allow request for unadvertised object" not in _words(error):
                    raise
                if moved:
                    raise Refused(*moved) from None
                self._fetch([f"refs/tags/{self.tag_name}"])
        if not self.store.has(commit):
            raise EnvironmentFault(
                Finding(
                    "verify-failed",
                    "the server sent something else than the pinned commit",
                    expected=f"commit {commit}",
                    found="no intact object of that id",
                    next="run the command again, or leave out --source git",
                )
            )
        return moved

    def fetch_commits(self, commits: Sequence[str], refs: Sequence[str]) -> None:
        """Bring commits with their trees, whatever tag they have; blobs come when needed.

        refs: names that lead to them, asked for whole where the server serves no such id.
        """
        absent = [commit for commit in commits if not self.store.has(commit)]
        if not absent:
            return
        with locked(self._lock, wait=_WAIT):
            try:
                self._fetch(absent)
            except EnvironmentFault as error:
                if "not allow request for unadvertised object" not in _words(error):
                    raise
                self._git([*_QUIET, "--", git.REMOTE, *refs])

    def fetch_whole(self, commit: str, ref: str = "") -> None:
        """Bring one commit with everything in it. ref: what leads to it, asked for where the
        server serves no such id."""
        with locked(self._lock, wait=_WAIT):
            try:
                self._fetch([commit], ())
            except EnvironmentFault as error:
                if not ref or "not allow request for unadvertised object" not in _words(error):
                    raise
                self._fetch([ref], ())

    def fetch_blobs(self, oids: Sequence[str]) -> None:
        """Bring those of `oids` that the store lacks, in batches."""
        absent = self.store.objects.absent(oids)
        for start in range(0, len(absent), _PER_REQUEST):
            with locked(self._lock, wait=_WAIT):
                self._fetch(absent[start : start + _PER_REQUEST])

    def _moved(self, commit: str) -> tuple[Finding, ...]:
        found = self._tag()
        if found and found != commit:
            return (_tag_moved(self.tag_name, commit, found),)
        return ()

    def _fetch(self, wants: Sequence[str], without: Sequence[str] = _NO_BLOBS) -> None:
        # "--": pins.toml's address is never taken for an option
        args = [*_QUIET, "--depth=1", *without, "--stdin", "--", git.REMOTE]
        self._git(args, "".join(f"{want}\n" for want in wants).encode("ascii"))

    def _prepare(self) -> None:
        """Make the small repository; take away what a killed git left locked (we hold the lock)."""
        for name in _LOCKS:
            remove_file(os.path.join(self.git_dir, name))
        if not os.path.exists(os.path.join(self.git_dir, "HEAD")):
            make_folder(self.git_dir)
            git.run(["init", "--quiet", "--bare", "--template=", self.git_dir])

    def _git(self, args: list[str], input: bytes = b"") -> bytes:
        self._prepare()
        done = git.attempt(
            args,
            git_dir=self.git_dir,
            input=input,
            network=True,
            timeout=_WAIT,
            # With nothing in common to negotiate, asking for it would only cost round trips.
            settings={"fetch.negotiationAlgorithm": "noop"},
            extra={
                "GIT_OBJECT_DIRECTORY": os.path.join(self.store.git_dir, "objects"),
                **git.remote(self.url),
            },
        )
        if done.returncode != 0:
            error = git.fault(args, done.returncode, done.stderr)
            raise EnvironmentFault(_unreachable(self.url, error))
        self.unfiltered = self.unfiltered or b"filtering not recognized" in done.stderr
        return done.stdout


def _words(error: EnvironmentFault) -> str:
    return " ".join(f"{f.message} {' '.join(f.details)}" for f in error.findings)


def _unreachable(url: str, error: EnvironmentFault) -> Finding:
    first = error.findings[0]
    return Finding(
        "network",
        f"{blotted(url)} cannot be asked: {first.message}",
        expected="an answer of the git server",
        found=first.found,
        next="check the network; or leave out --source git: the sdist needs no git server",
        details=first.details,
    )


def _tag_moved(tag: str, commit: str, found: str) -> Finding:
    return Finding(
        "tag-moved",
        f"the tag {tag} is not the pinned commit" if found else f"there is no tag {tag}",
        expected=f"commit {commit}",
        found=f"commit {found}" if found else "no such tag",
        next="ask upstream why; the pinned commit is what patchkit uses",
    )


def _unfiltered(url: str) -> Finding:
    return Finding(
        "network",
        f"{blotted(url)} cannot leave files out: all of the commit was fetched",
        expected="a server with uploadpack.allowFilter",
        found="the filter was ignored",
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
