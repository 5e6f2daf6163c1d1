"""One question to a git server, and what went wrong with it in words.

Each server has a small bare repository below the cache folder, for what git wants to remember of
it (shallow, promisor): the store itself knows of no server.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_file
from patchkit.store import git
from patchkit.store.address import blotted
from patchkit.store.cache import REMOTES
from patchkit.store.repo import Store

if TYPE_CHECKING:
    import subprocess

WAIT = 3600.0
"""Seconds for a fetch, and for another process that fetches from the same server."""
PATIENCE = 180.0
"""Seconds for a list of refs: what takes longer is no answer."""
_LOCKS = ("shallow.lock", "config.lock", "packed-refs.lock")
_ID = re.compile(r"[0-9a-f]{40}")


class NotById(EnvironmentFault):
    """The server gives only what its refs name, not whatever id is asked for."""


@dataclass(frozen=True)
class Asking:
    """The server at `url`. name: of its small repository. otherwise: what else the user may do
    where it cannot be had, "" for nothing."""

    store: Store
    url: str
    kind: str = ""
    otherwise: str = ""

    @property
    def git_dir(self) -> str:
        """The small repository."""
        name = hashlib.sha256(self.url.encode()).hexdigest()[:16]
        return os.path.join(self.store.root, REMOTES, f"{name}{self.kind}.git")

    @property
    def lock(self) -> str:
        """The file to be locked around `run` and `refs`."""
        return f"{self.git_dir}.lock"

    def refs(self, names: Sequence[str]) -> dict[str, str]:
        """What the server has of these refs now: name -> id.

        Raises EnvironmentFault(network); also for one that lists nothing whatever: a sign-in page
        looks to git like an empty repository.
        """
        found = self._listed([*names, "HEAD"]) or self._listed([])
        if not found:
            raise EnvironmentFault(self._fault("it lists neither branch nor tag", "no refs"))
        if not all(map(_ID.fullmatch, found.values())):
            raise EnvironmentFault(self._other_ids())
        return {name: found[name] for name in names if name in found}

    def _listed(self, names: Sequence[str]) -> dict[str, str]:
        out = self.run(["ls-remote", "--", git.REMOTE, *names], timeout=PATIENCE).stdout
        rows = (line.partition("\t") for line in out.decode("utf-8", "replace").splitlines())
        return {name: oid for oid, _, name in rows}

    def run(
        self,
        args: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = WAIT,
        settings: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """One git command to its end; the server is `git.REMOTE` in it.

        Raises EnvironmentFault (network, disk), NotById.
        """
        self._prepare()
        try:
            done = git.attempt(
                args,
                git_dir=self.git_dir,
                input=input,
                network=True,
                timeout=timeout,
                settings=settings,
                extra={**git.remote(self.url), **(extra or {})},
            )
        except EnvironmentFault as error:
            first = error.findings[0]
            raise EnvironmentFault(self._fault(first.message, first.found)) from None
        if done.returncode != 0:
            raise self._failed(git.fault(args, done.returncode, done.stderr).findings[0])
        return done

    def _prepare(self) -> None:
        """Make the small repository; take away what a killed git left locked (we hold the lock)."""
        for name in _LOCKS:
            remove_file(os.path.join(self.git_dir, name))
        if not os.path.exists(os.path.join(self.git_dir, "HEAD")):
            make_folder(self.git_dir)
            git.run(["init", "--quiet", "--bare", "--template=", self.git_dir])

    def _failed(self, first: Finding) -> EnvironmentFault:
        words = f"{first.message} {' '.join(first.details)}"
        fault = replace(self._fault(first.message, first.found), details=first.details)
        if "not allow request for unadvertised object" in words:
            return NotById(fault)
        if "mismatched algorithms" in words:
            return EnvironmentFault(self._other_ids())
        if "No space left on device" in words:
            full = Finding("disk", first.message, details=first.details)
            return EnvironmentFault(replace(full, next="free some space and run the command again"))
        for sign, hint in _HINTS:
            if sign in words:
                return EnvironmentFault(replace(fault, next=self._or(hint)))
        return EnvironmentFault(fault)

    def _fault(self, why: str, found: str) -> Finding:
        return Finding(
            "network",
            f"{blotted(self.url)} cannot be asked: {why}",
            expected="an answer of the git server",
            found=found,
            next=self._or("check the network"),
        )

    def _other_ids(self) -> Finding:
        return replace(
            self._fault("its ids are SHA-256, which patchkit does not read", "ids of 64 digits"),
            expected="a repository whose ids are SHA-1",
            next=self._or("name another server of that project"),
        )

    def _or(self, hint: str) -> str:
        return f"{hint}; {self.otherwise}" if self.otherwise else hint


_HINTS = (
    ("not our ref", "compare the commit with upstream's: the server has none of that id"),
    ("dumb http", "give the address of a git server: this one has only files, or a web page"),
    ("Authentication failed", "give git the credentials of that server"),
    ("could not read Username", "give git the credentials of that server"),
    ("Permission denied", "give git the credentials of that server"),
    ("error: 403", "give git the credentials of that server"),
    ("not found", "check the address and whether you may read it"),
    ("not exported", "check the address and whether you may read it"),
    ("does not appear to be a git repository", "check the address and whether you may read it"),
)
"""What git's words mean for the user, where it is not the network."""
