"""A git repository of the user's, of which only files are read: no git runs under its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchkit.series.pins import Pin
from patchkit.store import git
from patchkit.store.pipes import also_reading
from patchkit.store.repo import Store

if TYPE_CHECKING:
    from git import Repo

_ID = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Checkout:
    """A repository.

    objects: its object folder. path: its own. head: the id that HEAD leads to, "" for none. tags:
    name -> id.
    """

    objects: str
    head: str
    tags: Mapping[str, str]
    path: str = ""

    @classmethod
    def at(cls, path: str, *, bare: bool = False) -> Checkout | None:
        """The repository whose top is `path` itself; None where there is none.

        bare: it may also be a repository without a work tree.
        """
        inside = os.path.join(path, "objects") if bare else ""
        if not os.path.lexists(os.path.join(path, ".git")) and not os.path.isdir(inside):
            return None
        from git import GitError, Repo

        try:
            with Repo(path, search_parent_directories=False) as repo:
                objects = os.path.abspath(os.path.join(repo.common_dir, "objects"))
                # Not `repo.head.commit`: that asks a git process, which obeys the repository.
                tags = {tag.name: _led_to(repo, tag.path) for tag in repo.tags}
                return cls(objects, _led_to(repo, "HEAD"), tags, path)
        except (GitError, OSError, ValueError):
            return None

    def commit(self, store: Store, pin: Pin) -> str:
        """The pin's commit, where the repository has it; else ""."""
        wanted = pin.commit or pin.commit_prefix
        return self.peeled(store, [wanted])[0] if wanted else ""

    def named(self, name: str) -> list[str]:
        """The ids that a name may stand for: HEAD, a branch, a tag, an id (whole or its beginning),
        in git's order. Read from the repository's files alone."""
        if re.fullmatch(r"[0-9a-f]{40}", name):
            return [name]
        from git import GitError, Repo

        found: list[str] = []
        try:
            with Repo(self.path, search_parent_directories=False) as repo:
                refs = [name] if name in ("HEAD",) or name.startswith("refs/") else []
                refs += [f"refs/tags/{name}", f"refs/heads/{name}", f"refs/remotes/{name}"]
                found = [oid for ref in refs if (oid := _led_to(repo, ref))]
        except (GitError, OSError, ValueError):
            pass
        return [*found, *([name] if re.fullmatch(r"[0-9a-f]{4,39}", name) else [])]

    def described(self, store: Store) -> str:
        """What is checked out, in words."""
        if not self.head:
            return "no commit"
        peeled = self.peeled(store, list(self.tags.values()))
        names = [name for name, oid in zip(self.tags, peeled, strict=True) if oid == self.head]
        return f"commit {self.head}" + (f" ({', '.join(names[:3])})" if names else "")

    def peeled(self, store: Store, names: Sequence[str]) -> list[str]:
        """The commit that each id leads to, or "", as a git of ours sees it in those objects."""
        out = git.run(
            ["cat-file", "--batch-check=%(objectname)"],
            git_dir=store.git_dir,
            input="".join(f"{name}^{{commit}}\n" for name in names).encode("ascii"),
            extra=also_reading(self.objects),
        )
        lines = out.decode("ascii", "replace").splitlines()
        return [line if _ID.fullmatch(line) else "" for line in lines]


def _led_to(repo: Repo, ref: str) -> str:
    from git import SymbolicReference

    try:
        return str(SymbolicReference.dereference_recursive(repo, ref) or "")
    except (ValueError, OSError):
        return ""
