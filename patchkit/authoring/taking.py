"""What a person did in a work tree: its files against a tree, and its commits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, File, path_text
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.store import git
from patchkit.store.pipes import ObjectReader, also_reading
from patchkit.store.repo import Store
from patchkit.store.tree import Fetch, StoreTree
from patchkit.target.checkout import (
    edited_paths,
    head_commit,
    index_entries,
    unmerged_paths,
    untracked_paths,
)

SHOWN = 12
"""Untracked files that a message names."""

_IDENT = re.compile(rb"(.*) (\d+) ([+-]\d{4})")


@dataclass(frozen=True)
class Files:
    """The work tree's tracked files against a tree. changes: path -> file, None where it is gone.

    untracked: neither tracked nor ignored, so not taken.
    """

    changes: Mapping[str, File | None]
    untracked: tuple[str, ...]


def take_files(store: Store, at: str, tree: StoreTree, *, add: bool = False) -> Files:
    """What differs in the work tree at `at` from `tree`.

    Tracked is what the index lists, whatever it says of the content. add: untracked files are
    taken too. Raises Refused(conflict) where a merge left conflicts.
    """
    unmerged = unmerged_paths(store, at)
    if unmerged:
        raise Refused(
            *(
                Finding(
                    "conflict",
                    f"{path} has a conflict that is not resolved",
                    Where(file=path),
                    expected="the file as it is to be, and git add",
                    next=f"git -C {at} add -- {path}, when it is as it should be",
                )
                for path in unmerged[:SHOWN]
            )
        )
    listed = {e.path: e for e in tree.walk()}
    index = {e.path: e for e in index_entries(store, at)}
    paths = {p for p in {*listed, *index} if listed.get(p) != index.get(p)}
    paths.update(edited_paths(store, at))
    untracked = untracked_paths(store, at)
    if add:
        paths.update(untracked)
    root = Root(at)
    tree.prefetch(sorted(paths & listed.keys()))
    changes: dict[str, File | None] = {}
    for path in sorted(paths):
        old = listed.get(path)
        if old is not None and old.mode == GITLINK:
            continue
        file = root.get(path)
        if file is None and old is None:
            continue
        if file is None or old is None or (file.oid, file.mode) != (old.oid, old.mode):
            changes[path] = file
    return Files(changes, () if add else tuple(untracked))


@dataclass(frozen=True)
class Taken:
    """One commit of the work tree. before, after: tree ids. author: `Name <mail>`; date: git's
    `SECONDS +ZONE`. message: as it stands, with line feeds only.
    """

    commit: str
    before: str
    after: str
    author: str
    date: str
    message: str

    @property
    def subject(self) -> str:
        """The first paragraph on one line, as git has it."""
        first = self.message.strip("\n").split("\n\n")[0]
        return " ".join(line.strip() for line in first.split("\n")).strip()

    @property
    def body(self) -> str:
        """What follows the first paragraph."""
        return self.message.strip("\n").partition("\n\n")[2].strip("\n")


class Commits:
    """The commits of a work tree, read with the store's git: no configuration of the work tree's
    repository is obeyed. Close it, or use it in a `with` block.
    """

    def __init__(
        self, store: Store, at: str, *, objects: str = "", fetch: Fetch | None = None
    ) -> None:
        """objects: the repository's object folder, "" for that of a work tree at `at`. fetch:
        brings blobs that are not there."""
        self._store = store
        self._at = at
        self._fetch = fetch
        self._folder = objects or os.path.join(at, ".git", "objects")
        self._objects = ObjectReader(store.git_dir, self._folder)

    def __enter__(self) -> Commits:
        return self

    def __exit__(self, *error: object) -> None:
        self._objects.close()

    def since(self, base: str, head: str = "") -> list[Taken]:
        """Every commit from `base` (not among them) to HEAD (or `head`), oldest first.

        Raises Refused(unsupported) where HEAD does not stand on `base` in one line.
        """
        head = head or head_commit(self._at)
        out = self._git(["rev-list", "--reverse", "--topo-order", "--parents", head, f"^{base}"])
        rows = [line.split() for line in out.decode("ascii").splitlines()]
        before = base
        taken: list[Taken] = []
        for commit, *parents in rows:
            if parents != [before]:
                merge = next((row for row in rows if len(row) > 2), [commit, *parents])
                raise Refused(_not_a_line(self._at, base, merge[0], merge[1:]))
            taken.append(self._taken(commit, before))
            before = commit
        if before != head:
            raise Refused(_not_a_line(self._at, base, head, []))
        return taken

    def told(self, commit: str) -> Taken:
        """One commit against its first parent. Raises Refused(unsupported) for one without."""
        parents = self._read(commit)[0].get(b"parent", b"").decode("ascii")
        if not parents:
            raise Refused(_not_a_line(self._at, "", commit, []))
        return self._taken(commit, parents)

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit."""
        return self._read(commit)[0][b"tree"].decode("ascii")

    def tree(self, oid: str) -> StoreTree:
        """A tree of the work tree's repository."""
        return StoreTree(oid, self._objects, self._fetch)

    def changes(self, before: str, after: str) -> dict[str, File | None]:
        """What differs between two trees: path -> file, None where it is gone."""
        out = self._git(["diff-tree", "-r", "--no-renames", "--no-commit-id", "-z", before, after])
        words = out.split(b"\0")
        paths = [path_text(path) for path in words[1::2]]
        tree = self.tree(after)
        tree.prefetch(paths)
        return {path: tree.get(path) for path in paths}

    def _taken(self, commit: str, parent: str) -> Taken:
        fields, message = self._read(commit)
        stated = _IDENT.fullmatch(fields.get(b"author", b""))
        encoding = fields.get(b"encoding", b"utf-8").decode("ascii", "replace")
        try:
            text = message.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            text = message.decode("utf-8", "surrogateescape")
        return Taken(
            commit,
            self._read(parent)[0][b"tree"].decode("ascii"),
            fields[b"tree"].decode("ascii"),
            stated[1].decode("utf-8", "surrogateescape") if stated else "",
            f"{stated[2].decode()} {stated[3].decode()}" if stated else "",
            text.replace("\r\n", "\n").replace("\r", "\n"),
        )

    def _read(self, commit: str) -> tuple[dict[bytes, bytes], bytes]:
        head, _, message = self._objects.read(commit, "commit").partition(b"\n\n")
        rows = [line.partition(b" ") for line in head.split(b"\n") if line[:1] != b" "]
        fields: dict[bytes, bytes] = {}
        for name, _, value in rows:
            fields.setdefault(name, value)
        return fields, message

    def _git(self, args: Sequence[str]) -> bytes:
        try:
            return git.run(args, git_dir=self._store.git_dir, extra=also_reading(self._folder))
        except EnvironmentFault as error:
            raise Refused(
                Finding(
                    "unsupported",
                    f"the commits of {self._at} cannot be read",
                    Where(file=self._at),
                    found=error.findings[0].message,
                    next="patchkit edit PATCH --to another folder",
                )
            ) from error


def _not_a_line(at: str, base: str, commit: str, parents: Sequence[str]) -> Finding:
    found = {0: "a commit without a parent", 1: "another base"}.get(len(parents), "a merge")
    return Finding(
        "unsupported",
        "the commits of the work tree are not one line on the bare upstream",
        Where(file=at),
        expected=f"commits with one parent each, down to base ({base[:12]})",
        found=f"{commit[:12]}: {found}",
        next=f"git -C {at} rebase base",
    )
