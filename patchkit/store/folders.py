"""Tree objects: read, and rewritten where something below them changes.

`Editor` holds the folders that changes touch, and nothing else. A file that is merely changed has
its 20 bytes overwritten in place; the object is stored as a delta of those places. A folder's
bytes are put together anew only where a name comes or goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from patchkit.engine.model import File, path_bytes
from patchkit.store.delta import patched
from patchkit.store.pack import Pack, object_id

FOLDER = 0o40000
_DEPTH = 30
"""Longest chain of deltas between versions of one folder; reading follows all of them."""
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)


@dataclass
class Entry:
    """One line of a tree object. place: offset of the id in the object's bytes."""

    mode: int
    oid: bytes
    place: int


def parse_folder(raw: bytes) -> dict[bytes, Entry]:
    """The entries of a tree object by name, in its order."""
    return {m[2]: Entry(int(m[1], 8), m[3], m.start(3)) for m in _ENTRY.finditer(raw)}


def folder_bytes(entries: Mapping[bytes, tuple[int, bytes]]) -> bytes:
    """A tree object of (mode, id) by name. git sorts a folder as if its name ended in a slash."""
    names = sorted(entries, key=lambda n: n + b"/" if entries[n][0] == FOLDER else n)
    return b"".join(b"%o %s\0%s" % (entries[n][0], n, entries[n][1]) for n in names)


class _Folder:
    """One folder being edited. parent, name: where it stands; the root has no parent."""

    def __init__(self, raw: bytes, parent: _Folder | None = None, name: bytes = b"") -> None:
        self.raw = bytearray(raw)
        self.entries = parse_folder(raw)
        self.parent, self.name = parent, name
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.children: dict[bytes, _Folder] = {}
        self.last: bytes | None = None  # id of the version in the pack that a delta may start from
        self.deltas = 0  # between that version and a whole one
        self.places: set[int] = set()  # where ids were overwritten since that version
        self.reshaped = False
        self.changed = False

    def set(self, name: bytes, mode: int, oid: bytes) -> None:
        entry = self.entries.get(name)
        if entry is None or entry.mode != mode:
            self.entries[name] = Entry(mode, oid, 0)
            self.reshaped = True
        elif entry.oid != oid:
            entry.oid = oid
            if not self.reshaped:
                self.raw[entry.place : entry.place + 20] = oid
                self.places.add(entry.place)
        else:
            return
        self.changed = True

    def drop(self, name: bytes) -> None:
        self.children.pop(name, None)
        if self.entries.pop(name, None) is not None:
            self.reshaped = self.changed = True

    def seal(self, pack: Pack) -> bytes:
        """Write this folder as it is now; give its id."""
        if self.reshaped:
            raw = folder_bytes({n: (e.mode, e.oid) for n, e in self.entries.items()})
            self.raw, self.entries = bytearray(raw), parse_folder(raw)
            self.reshaped, self.last = False, None
        oid = object_id("tree", self.raw)
        self.changed = False
        if self.last is None or self.deltas >= _DEPTH or len(self.places) * 60 > len(self.raw):
            pack.add("tree", self.raw, oid)
            self.deltas = 0
        else:
            spots = [(at, self.raw[at : at + 20]) for at in sorted(self.places)]
            pack.add_delta(oid, self.last, patched(len(self.raw), spots))
            self.deltas += 1
        self.last = oid
        self.places.clear()
        return oid


class Editor:
    """Applies changes to a tree, one set after the other, writing what comes out into a pack."""

    def __init__(self, root: str, read: Callable[[str], bytes], pack: Pack) -> None:
        self._read = read
        self._pack = pack
        self._root = _Folder(read(root))
        self.oid = root

    def apply(self, changes: Mapping[str, File | None]) -> str:
        """Make `changes` (None deletes; deletions come first) and give the new tree's id.

        Blobs are not written here. Raises ValueError where a file and a folder would need the
        same name: the engine has refused such a patch before.
        """
        touched: set[_Folder] = set()
        for path in sorted(changes, key=lambda p: changes[p] is not None):
            file = changes[path]
            above, _, name = path_bytes(path).rpartition(b"/")
            folder = self._folder(above, path, make=file is not None)
            if folder is None:
                continue
            if file is None:
                folder.drop(name)
            else:
                self._check_free(folder, name, path)
                folder.set(name, file.mode, bytes.fromhex(file.oid))
            touched.add(folder)
        self._settle(touched)
        return self.oid

    def _folder(self, above: bytes, path: str, *, make: bool) -> _Folder | None:
        """The folder `above`, which holds `path`."""
        folder = self._root
        for name in above.split(b"/") if above else ():
            child = folder.children.get(name)
            if child is None:
                entry = folder.entries.get(name)
                if entry is None or entry.mode != FOLDER:
                    if not make:
                        return None
                    if entry is not None:
                        raise ValueError(f"{path}: a file stands where a folder is needed")
                    raw = b""
                else:
                    raw = self._read(entry.oid.hex())
                child = folder.children[name] = _Folder(raw, folder, name)
            folder = child
        return folder

    def _check_free(self, folder: _Folder, name: bytes, path: str) -> None:
        entry = folder.entries.get(name)
        if name in folder.children or (entry is not None and entry.mode == FOLDER):
            child = folder.children.get(name)
            if child is None or _holds_files(child):
                raise ValueError(f"{path}: a folder stands where a file is needed")
            folder.drop(name)

    def _settle(self, touched: set[_Folder]) -> None:
        """Write the changed folders, deepest first, each once."""
        for folder in list(touched):
            above = folder.parent
            while above is not None and above not in touched:
                touched.add(above)
                above = above.parent
        for folder in sorted(touched, key=lambda f: -f.depth):
            parent, name = folder.parent, folder.name
            if parent is None:
                if folder.changed:
                    self.oid = folder.seal(self._pack).hex()
            elif parent.children.get(name) is not folder:
                continue  # a file took its place
            elif not folder.entries:
                parent.drop(name)
            elif folder.changed:
                parent.set(name, FOLDER, folder.seal(self._pack))


def _holds_files(folder: _Folder) -> bool:
    return any(
        entry.mode != FOLDER or name not in folder.children or _holds_files(folder.children[name])
        for name, entry in folder.entries.items()
    )
