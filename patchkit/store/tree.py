"""A tree of the store, read lazily: only the folders and blobs that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, File, path_bytes, path_text
from patchkit.store.folders import FOLDER, Entry, parse_folder
from patchkit.store.pipes import Missing, ObjectReader

Fetch = Callable[[Sequence[str]], None]
"""Brings blobs that the store lacks (a git source fetches only what is needed)."""


@dataclass(frozen=True)
class Listed:
    """One file of a tree, without its content: git mode and object id (40 hex digits)."""

    path: str
    mode: int
    oid: str


class StoreTree:
    """The engine's Tree over a tree object.

    oid: the tree's id. fetch: brings missing blobs, where the source can. Blobs are kept once
    read. Raises EnvironmentFault where the store is damaged (verify-failed) or git fails.
    """

    def __init__(self, oid: str, objects: ObjectReader, fetch: Fetch | None = None) -> None:
        self.oid = oid
        self._objects = objects
        self._fetch = fetch
        self._folders: dict[str, dict[bytes, Entry]] = {}
        self._files: dict[str, File] = {}
        self._paths: bytes | None = None

    def _folder(self, path: str) -> dict[bytes, Entry] | None:
        """The entries of the folder at `path` ("" is the root); None where there is none."""
        known = self._folders.get(path)
        if known is not None:
            return known
        oid = self.oid
        if path:
            above, _, name = path.rpartition("/")
            folder = self._folder(above)
            entry = folder.get(path_bytes(name)) if folder is not None else None
            if entry is None or entry.mode != FOLDER:
                return None
            oid = entry.oid.hex()
        known = parse_folder(self._objects.trees([oid])[0])
        self._folders[path] = known
        return known

    def listed(self, path: str) -> Listed | None:
        """Mode and id of the file at `path`, without reading it; None where there is none."""
        above, _, name = path.rpartition("/")
        folder = self._folder(above)
        entry = folder.get(path_bytes(name)) if folder is not None else None
        if entry is None or entry.mode == FOLDER:
            return None
        return Listed(path, entry.mode, entry.oid.hex())

    def get(self, path: str) -> File | None:
        """The file at `path`, its bytes checked against its id. A submodule has no content."""
        known = self._files.get(path)
        if known is not None:
            return known
        found = self.listed(path)
        if found is None:
            return None
        if found.mode == GITLINK:
            return _file(found, b"")
        try:
            data = self._objects.read(found.oid, "blob")
        except Missing:
            if self._fetch is None:
                raise
            self._fetch([found.oid])
            data = self._objects.read(found.oid, "blob")
        known = self._files[path] = _file(found, data)
        return known

    def prefetch(self, paths: Iterable[str]) -> None:
        """Read the files at `paths` in one go; missing ones are passed over."""
        paths = list(paths)
        self._prefetch_folders(paths)
        wanted = [
            found
            for path in paths
            if path not in self._files
            and (found := self.listed(path)) is not None
            and found.mode != GITLINK
        ]
        if self._fetch is not None and wanted:
            self._fetch([found.oid for found in wanted])
        contents = self._objects.read_many((found.oid for found in wanted), "blob")
        for found, data in zip(wanted, contents, strict=True):
            self._files[found.path] = _file(found, data)

    def _prefetch_folders(self, paths: Iterable[str]) -> None:
        """Read the folders above `paths`, one round a level."""
        above = {path.rpartition("/")[0] for path in paths} - self._folders.keys()
        levels: dict[int, set[str]] = {}
        for folder in above:
            while folder and folder not in levels.setdefault(folder.count("/"), set()):
                levels[folder.count("/")].add(folder)
                folder = folder.rpartition("/")[0]
        for level in sorted(levels):
            wanted: dict[str, str] = {}
            for folder in levels[level] - self._folders.keys():
                parent, _, name = folder.rpartition("/")
                entry = (self._folder(parent) or {}).get(path_bytes(name))
                if entry is not None and entry.mode == FOLDER:
                    wanted[folder] = entry.oid.hex()
            raws = self._objects.trees(list(wanted.values()))
            for folder, raw in zip(wanted, raws, strict=True):
                self._folders[folder] = parse_folder(raw)

    def is_folder(self, path: str) -> bool:
        """Whether some file stands below `path`."""
        return self._folder(path) is not None

    def named(self, name: str) -> list[str]:
        """Paths whose last part is `name`, sorted."""
        if "/" in name or not name:
            return []
        paths = self._all_paths()
        raw = path_bytes(name) + b"\0"
        found: list[str] = []
        at = paths.find(raw)
        while at >= 0:
            start = paths.rfind(b"\0", 0, at) + 1
            if start == at or paths[at - 1 : at] == b"/":
                found.append(path_text(paths[start : at + len(raw) - 1]))
            at = paths.find(raw, at + 1)
        return sorted(found)

    def _all_paths(self) -> bytes:
        """Every path, each ended by NUL: about 0.5 MB for a project of 7,000 files."""
        if self._paths is None:
            self._paths = b"".join(path_bytes(f.path) + b"\0" for f in self.walk())
        return self._paths

    def walk(self, below: str = "") -> Iterator[Listed]:
        """Every file below the folder `below`, in git's order, without contents."""
        folder = self._folder(below)
        if folder is None:
            return
        lead = below + "/" if below else ""
        for name, entry in folder.items():
            path = lead + path_text(name)
            if entry.mode == FOLDER:
                yield from self.walk(path)
            else:
                yield Listed(path, entry.mode, entry.oid.hex())

    def added(self, before: StoreTree, below: str = "") -> Iterator[Listed]:
        """Files below `below` at whose path `before` has none. Equal folders are not read."""
        mine, other = self._folder(below) or {}, before._folder(below) or {}
        lead = below + "/" if below else ""
        for name, entry in mine.items():
            theirs, path = other.get(name), lead + path_text(name)
            if theirs is not None and theirs.oid == entry.oid:
                continue
            if entry.mode == FOLDER:
                yield from self.added(before, path)
            elif theirs is None or theirs.mode == FOLDER:
                yield Listed(path, entry.mode, entry.oid.hex())

    def differing(self, other: StoreTree, below: str = "") -> Iterator[tuple[str, bool]]:
        """The paths at which the two have not the same file, and whether only one has any there.
        Equal folders are not read."""
        mine, theirs = self._folder(below) or {}, other._folder(below) or {}
        lead = below + "/" if below else ""
        for name in sorted(mine.keys() | theirs.keys()):
            one, two = mine.get(name), theirs.get(name)
            if one is not None and two is not None and _same(one, two):
                continue
            path = lead + path_text(name)
            modes = [entry.mode for entry in (one, two) if entry is not None]
            if FOLDER in modes:
                yield from self.differing(other, path)
            files = len(modes) - modes.count(FOLDER)
            if files:
                yield path, files == 1

    def has_folder(self, path: str) -> bool:
        """Whether there is a folder at `path`."""
        return self._folder(path) is not None

    def contents(self, files: Iterable[Listed]) -> Iterator[tuple[Listed, bytes]]:
        """The files with their bytes, streamed and not kept. Submodules have none."""
        batch: list[Listed] = []
        for listed in files:
            batch.append(listed)
            if len(batch) >= 256:
                yield from self._contents(batch)
                batch = []
        yield from self._contents(batch)

    def _contents(self, batch: list[Listed]) -> Iterator[tuple[Listed, bytes]]:
        real = [f for f in batch if f.mode != GITLINK]
        if self._fetch is not None and real:
            self._fetch([f.oid for f in real])
        data = self._objects.read_many((f.oid for f in real), "blob")
        for listed in batch:
            yield listed, b"" if listed.mode == GITLINK else next(data)


def _same(one: Entry, two: Entry) -> bool:
    return (one.mode, one.oid) == (two.mode, two.oid)


def _file(found: Listed, data: bytes) -> File:
    file = File(data, found.mode)
    # The id was checked when the bytes were read: hashing them again would double the cost.
    file.__dict__["oid"] = found.oid
    return file
