"""A git repository of the user's, of which only files are read: no git runs under its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.series.pins import Pin
from patchkit.source.refs import Refs
from patchkit.store import git
from patchkit.store.pipes import also_reading
from patchkit.store.repo import Store

_ID = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Checkout:
    """A repository.

    objects: its object folder. head: the id that HEAD leads to, "" for none. tags: name -> id.
    """

    objects: str
    head: str
    tags: Mapping[str, str]
    refs: Refs

    @classmethod
    def at(cls, path: str, *, bare: bool = False) -> Checkout | None:
        """The repository whose top is `path` itself; None where there is none.

        bare: it may also be a repository without a work tree. Raises Refused(symlink-in-path)
        where its object folder holds links.
        """
        refs = Refs.at(path, bare=bare)
        if refs is None:
            return None
        refs.require_no_links()
        return cls(refs.objects, refs.id_of("HEAD"), refs.tags(), refs)

    def commit(self, store: Store, pin: Pin) -> str:
        """The pin's commit, where the repository has it; else ""."""
        wanted = pin.commit or pin.commit_prefix
        return self.peeled(store, [wanted])[0] if wanted else ""

    def named(self, name: str) -> list[str]:
        """The ids that a name may stand for: HEAD, a branch, a tag, an id (whole or its beginning),
        in git's order. Read from the repository's files alone."""
        if _ID.fullmatch(name):
            return [name]
        refs = [name] if name == "HEAD" or name.startswith("refs/") else []
        refs += [f"refs/tags/{name}", f"refs/heads/{name}", f"refs/remotes/{name}"]
        found = [oid for ref in refs if (oid := self.refs.id_of(ref))]
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
