"""The store: what the rest of patchkit sees of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from patchkit.engine.model import File
from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.atomic import make_folder, write_file
from patchkit.files.growing import remove_file
from patchkit.files.lock import locked
from patchkit.files.shared import InUse
from patchkit.store import cache, git
from patchkit.store.commits import Chain, ChainWriter, Commit
from patchkit.store.folders import Editor
from patchkit.store.importing import TreeBuilder
from patchkit.store.pack import Pack
from patchkit.store.pipes import ObjectReader
from patchkit.store.results import Result, Results
from patchkit.store.tree import Fetch, StoreTree

_MANY_PACKS = 50
_DAY = 86400.0
_CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tbare = true
[gc]
\tauto = 0
\tpruneExpire = never
"""
"""Nothing refers to our objects, so whoever runs gc in there must not lose them."""
_DONE = "patchkit"
"""Written last when the repository is made: without it a killed `open` is made again."""


class Store:
    """One cache folder: its objects and its results. Close it, or use it in a `with` block.

    root: the cache folder. git_dir: the bare repository. All objects that are read are checked
    against their ids (EnvironmentFault verify-failed).
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.git_dir = os.path.join(root, cache.STORE)
        self.objects = ObjectReader(self.git_dir)
        self.results = Results(os.path.join(root, cache.RESULTS))
        self._in_use: InUse | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None) -> Store:
        """The store below the folder `path` ($PATCHKIT_CACHE or the user's cache when None).

        Made where missing. Raises EnvironmentFault(disk, git).
        """
        store = cls(os.fspath(path) if path is not None else cache.cache_root())
        store._in_use = InUse(os.path.join(store.root, cache.IN_USE))
        if not store._made():
            with locked(os.path.join(store.root, "store.lock")):
                store._make()
        return store

    def _made(self) -> bool:
        """Whether all that git needs to find the objects is there, and nothing else is said."""
        try:
            with open(os.path.join(self.git_dir, "config"), "rb") as stream:
                said = stream.read(len(_CONFIG) + 1)
        except OSError:
            return False
        needed = (_DONE, "HEAD", "refs", os.path.join("objects", "pack"))
        return said == _CONFIG and all(
            os.path.exists(os.path.join(self.git_dir, name)) for name in needed
        )

    def _make(self) -> None:
        done = os.path.join(self.git_dir, _DONE)
        if self._made():
            return
        # What `git init --bare` makes, without the machine's template (hooks, excludes) and
        # whatever init.* settings say.
        for folder in ("objects/pack", "objects/info", "refs/heads"):
            make_folder(os.path.join(self.git_dir, folder))
        for name, text in (("HEAD", b"ref: refs/heads/none\n"), ("config", _CONFIG)):
            write_file(os.path.join(self.git_dir, name), text)
        write_file(done, b"made by patchkit; safe to delete as a whole\n")

    def close(self) -> None:
        """End the git process and give the cache back."""
        self.objects.close()
        if self._in_use is not None:
            self._in_use.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- reading ---------------------------------------------------------------------------
    def tree(self, oid: str, fetch: Fetch | None = None) -> StoreTree:
        """The tree `oid` (40 hex digits), read lazily. fetch: brings blobs that are missing."""
        return StoreTree(oid, self.objects, fetch)

    def has(self, oid: str) -> bool:
        """Whether the object is there and intact."""
        try:
            self.objects.read_any(oid)
        except EnvironmentFault:
            return False
        return True

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit. Raises Missing."""
        data = self.objects.read(commit, "commit")
        return data[5:45].decode("ascii")

    def verify(self, tree: str, *, partial: bool = False) -> tuple[Finding, ...]:
        """Every object below `tree` read and hashed: verify-failed for each that does not hold.

        partial: blobs that are not there are in order.
        """
        from patchkit.store.verify import verify_tree

        return verify_tree(self.objects, tree, partial=partial)

    # -- writing ---------------------------------------------------------------------------
    def _pack(self, level: int = 0) -> Pack:
        return Pack(os.path.join(self.git_dir, "objects", "pack"), level=level)

    def import_tree(
        self,
        files: Iterable[tuple[str, int, bytes]],
        progress: Callable[[int], None] | None = None,
    ) -> str:
        """Store files (path, git mode, bytes), streamed; give the tree's id.

        progress: called with the number of bytes of each file. Raises Refused(path-escape,
        unsupported) for a name that may not be used or that comes twice; nothing is kept then.
        """
        pack = self._pack(level=1)
        try:
            builder = TreeBuilder(pack)
            for path, mode, data in files:
                builder.add(path, mode, data)
                if progress is not None:
                    progress(len(data))
            oid = builder.finish()
            pack.close()
        finally:
            pack.abandon()
        return oid

    def write_tree(self, base: str, changes: Mapping[str, File | None]) -> str:
        """Store the tree `base` with `changes` made (None deletes); give its id."""
        return self.commit_chain(base, (), None, changes).tree

    def commit_chain(
        self,
        base_tree: str,
        steps: Sequence[Commit],
        base: Commit | str | None,
        changes: Mapping[str, File | None] | None = None,
    ) -> Chain:
        """Store a commit for each step, each over the tree of the one before.

        base: the commit to make of `base_tree` first; or the id of a commit with that tree, to go
        on from; or None for trees alone (then no commits are made). All is visible at the end, or
        nothing is. The same input gives the same ids, always.
        """
        pack = self._pack()
        try:
            writer = ChainWriter(pack, Editor(base_tree, self._read_folder, pack))
            if base is None:
                trees = writer.trees([changes or {}, *(step.changes for step in steps)])
                chain = Chain((), tuple(trees))
            else:
                chain = writer.chain(steps, base)
            if pack.close() is not None:
                self._tidy()
        finally:
            pack.abandon()
        return chain

    def _read_folder(self, oid: str) -> bytes:
        return self.objects.trees([oid])[0]

    def _tidy(self) -> None:
        """Join small packs when there are many: each one makes every look-up slower.

        Objects that nothing refers to stay (all of ours are such).
        """
        folder = os.path.join(self.git_dir, "objects", "pack")
        names = os.listdir(folder)
        if sum(name.endswith(".idx") for name in names) <= _MANY_PACKS:
            return
        try:
            with locked(os.path.join(self.root, "tidy.lock"), wait=0):
                git.attempt(
                    ["repack", "--geometric=2", "-d", "-q"],
                    git_dir=self.git_dir,
                    # Packs are copied together; looking for better deltas would take minutes.
                    settings={"pack.window": "0", "repack.writeBitmaps": "false"},
                )
                for name in names:
                    if name.startswith("tmp_") and _older(os.path.join(folder, name), _DAY):
                        remove_file(os.path.join(folder, name))  # of a process that was killed
        except EnvironmentFault:
            return  # somebody else is at it, or it can wait

    # -- results ---------------------------------------------------------------------------
    def cached(self, key: str, group: str = "") -> Result | None:
        """What `key` gave before; None where unknown, or where an object of it is not intact."""
        found = self.longest((key,), group or key)
        return found[1] if found else None

    def longest(self, keys: Sequence[str], group: str = "") -> tuple[int, Result] | None:
        """The result of the last of `keys` that is known and intact, and its place in them.

        A series' keys are those of its prefixes, the first patch alone first.
        """
        for place, result in self.results.longest(keys, group):
            if self._intact(result):
                return place, result
        return None

    def remember(self, key: str, ids: Sequence[str], text: str = "", group: str = "") -> None:
        """Record what `key` gives, after its objects were stored."""
        self.results.add(group or key, {key: Result(tuple(ids), text)})

    def remember_all(self, group: str, results: Mapping[str, Result]) -> None:
        """Record several keys of one group at once."""
        self.results.add(group, results)

    def _intact(self, result: Result) -> bool:
        """Every object is there; a commit that is followed by a tree has that tree."""
        tree_wanted = ""
        for oid in result.ids:
            try:
                kind, data = self.objects.read_any(oid)
            except EnvironmentFault:
                return False
            if tree_wanted and kind == "tree" and oid != tree_wanted:
                return False
            tree_wanted = data[5:45].decode("ascii") if kind == "commit" else ""
        return True


def _older(path: str, seconds: float) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > seconds
    except FileNotFoundError:
        return False
