"""The commits of a git server without their trees: enough to see where a branch has left.

They live in a repository of their own below the cache folder, so that the store's own objects
stay those of pinned trees. A second look only brings what is new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from patchkit.files.lock import locked
from patchkit.source.asking import WAIT, Asking
from patchkit.store import git
from patchkit.store.pipes import also_reading
from patchkit.store.repo import Store


class Graph:
    """The commits of the server at `url`. Methods raise EnvironmentFault(network, git)."""

    def __init__(self, store: Store, url: str) -> None:
        self.store = store
        self.url = url
        self._asking = Asking(store, url, "-graph")

    @property
    def git_dir(self) -> str:
        """The repository."""
        return self._asking.git_dir

    @property
    def objects(self) -> str:
        """The object folder."""
        return os.path.join(self.git_dir, "objects")

    def refs(self, *names: str) -> dict[str, str]:
        """What the server has of these refs now: name -> id."""
        with locked(self._asking.lock, wait=WAIT):
            return self._asking.refs(names)

    def fetch(self, wants: Sequence[str]) -> None:
        """Bring the history of these refs or ids, without trees where the server can."""
        kept = [f"+{want}:refs/patchkit/{_kept(want)}" for want in wants]
        line = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
        with locked(self._asking.lock, wait=WAIT):
            self._asking.run([*line, "--filter=tree:0", "--", git.REMOTE, *kept])

    def merge_base(self, one: str, two: str) -> str:
        """The commit where the two have parted; "" for none."""
        done = self._reads(["merge-base", one, two])
        return done.strip()

    def merged_by(self, commit: str, tip: str) -> str:
        """The first merge on the line of `tip` that has `commit`; "" where there is none."""
        out = self._reads(
            ["rev-list", "--first-parent", "--ancestry-path", "--merges", f"{commit}..{tip}"]
        )
        return (out.split() or [""])[-1]

    def parent(self, commit: str) -> str:
        """The first parent of a commit."""
        return self._reads(["rev-parse", f"{commit}^1"]).strip()

    def between(self, base: str, tip: str) -> list[str]:
        """The commits after `base` up to `tip` that are no merges, oldest first."""
        out = self._reads(["rev-list", "--reverse", "--topo-order", "--no-merges", tip, f"^{base}"])
        return out.split()

    def _reads(self, args: Sequence[str]) -> str:
        done = git.attempt(
            args,
            git_dir=self.git_dir,
            extra=also_reading(os.path.join(self.store.git_dir, "objects")),
        )
        if done.returncode not in (0, 1):
            raise git.fault(args, done.returncode, done.stderr)
        return done.stdout.decode("ascii", "replace")


def _kept(want: str) -> str:
    return re.sub(r"[^A-Za-z0-9/-]", "-", want.removeprefix("refs/")).strip("/-") or "head"
