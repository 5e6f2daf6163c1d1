"""A git server: asked for a tag, for exactly one commit, for the blobs that are needed.

Trees come at once, blobs when they are needed, in batches: a check of a series fetches a few
megabytes of a repository of hundreds. The objects go into the store, which knows of no server and
so never fetches behind our back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from patchkit.errors import EnvironmentFault, Finding, Refused
from patchkit.files.lock import locked
from patchkit.series.pins import Upstream
from patchkit.source.asking import WAIT, Asking, NotById
from patchkit.store import git
from patchkit.store.repo import Store

_PER_REQUEST = 2000
"""Blobs asked for in one request."""
_QUIET = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
_NO_BLOBS = "--filter=blob:none"
_WHOLE = "--no-filter"  # else a filter that was used once is used again
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")


class Server:
    """One upstream's repository.

    tags: how the tag of what is wanted may be called; the first that there is counts. otherwise:
    what else the user may do where the server cannot be asked. unfiltered: whether it sent blobs
    that it was asked to leave out. Every method raises EnvironmentFault(network) where it does not
    answer.
    """

    def __init__(self, store: Store, upstream: Upstream, *tags: str, otherwise: str = "") -> None:
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
        self.tags = tuple(tag for tag in tags if tag)
        self.unfiltered = False
        self._asking = Asking(store, self.url, otherwise=otherwise)

    def tag(self) -> str:
        """The commit that the tag names now; "" where there is no such tag."""
        with locked(self._asking.lock, wait=WAIT):
            return self._tagged()[1]

    def _tagged(self) -> tuple[str, str]:
        """The tag that there is, and the commit that it names; "" and "" for none."""
        refs = [f"refs/tags/{tag}{peel}" for tag in self.tags for peel in ("^{}", "")]
        found = self._asking.refs(refs) if refs else {}
        ref = next((ref for ref in refs if ref in found), "")
        return ref.removeprefix("refs/tags/").removesuffix("^{}"), found.get(ref, "")

    def find(self, name: str) -> tuple[str, str]:
        """("tags" or "heads", commit) that a tag or branch `name` leads to now; ("", "") for none.

        A tag comes first, as in git.
        """
        if not _REF.fullmatch(name) or ".." in name:
            return "", ""
        refs = (f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/heads/{name}")
        with locked(self._asking.lock, wait=WAIT):
            lines = self._asking.refs(refs)
        found = next((ref for ref in refs if ref in lines), None)
        return ("", "") if found is None else (found.split("/")[1], lines[found])

    def fetch_commit(self, commit: str) -> str:
        """Bring the commit with all its trees; give the commit that the tag names, "" for none.

        A server that serves no unadvertised id is asked for the tag; one that cannot leave blobs
        out sends them all. Raises Refused(tag-moved) where only the tag can be had and it is not
        the pinned commit.
        """
        with locked(self._asking.lock, wait=WAIT):
            tag, now = self._tagged()
            try:
                self._fetch([commit])
            except NotById:
                if now == commit:
                    self._fetch([f"refs/tags/{tag}"])
                elif now:
                    raise Refused(tag_moved(tag, commit, now)) from None
                else:
                    raise
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
        return now

    def fetch_commits(self, commits: Sequence[str], refs: Sequence[str]) -> None:
        """Bring commits with their trees, whatever tag they have; blobs come when needed.

        refs: names that lead to them, asked for whole where the server serves no such id.
        """
        absent = [commit for commit in commits if not self.store.has(commit)]
        if not absent:
            return
        with locked(self._asking.lock, wait=WAIT):
            try:
                self._fetch(absent)
            except NotById:
                self._run([*_QUIET, _WHOLE, "--", git.REMOTE, *refs])

    def fetch_whole(self, commit: str, ref: str = "") -> None:
        """Bring one commit with everything in it. ref: what leads to it, asked for where the
        server serves no such id."""
        with locked(self._asking.lock, wait=WAIT):
            try:
                self._fetch([commit], _WHOLE)
            except NotById:
                if not ref:
                    raise
                self._fetch([ref], _WHOLE)

    def fetch_blobs(self, oids: Sequence[str]) -> None:
        """Bring those of `oids` that the store lacks, in batches; all of the commit's where the
        server gives none by its id."""
        absent = self.store.objects.absent(oids)
        for start in range(0, len(absent), _PER_REQUEST):
            with locked(self._asking.lock, wait=WAIT):
                try:
                    self._fetch(absent[start : start + _PER_REQUEST])
                except NotById:
                    tag, _ = self._tagged()
                    if not tag:
                        raise
                    self._fetch([f"refs/tags/{tag}"], _WHOLE)
                    return

    def _fetch(self, wants: Sequence[str], which: str = _NO_BLOBS) -> None:
        # "--": pins.toml's address is never taken for an option
        args = [*_QUIET, "--depth=1", which, "--stdin", "--", git.REMOTE]
        self._run(args, "".join(f"{want}\n" for want in wants).encode("ascii"))

    def _run(self, args: Sequence[str], input: bytes = b"") -> None:
        done = self._asking.run(
            args,
            input=input,
            # With nothing in common to negotiate, asking for it would only cost round trips.
            settings={"fetch.negotiationAlgorithm": "noop"},
            extra={"GIT_OBJECT_DIRECTORY": os.path.join(self.store.git_dir, "objects")},
        )
        self.unfiltered = self.unfiltered or b"filtering not recognized" in done.stderr


def tag_moved(tag: str, commit: str, found: str) -> Finding:
    """That the tag names another commit, or none. commit: 40 hex digits, or the first of them."""
    return Finding(
        "tag-moved",
        f"the tag {tag} is not the pinned commit" if found else f"there is no tag {tag}",
        expected=f"commit {commit}",
        found=f"commit {found}" if found else "no such tag",
        next="ask upstream why; the pinned commit is what patchkit uses",
    )
