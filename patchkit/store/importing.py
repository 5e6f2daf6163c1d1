"""A whole tree brought into the store, file by file, in any order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from patchkit.engine.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, path_bytes, path_text
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where
from patchkit.store.folders import FOLDER, folder_bytes
from patchkit.store.pack import Pack

_MODES = (REGULAR, EXECUTABLE, SYMLINK, GITLINK)

_Node = dict[bytes, Any]
"""Name -> (mode, id) for a file, or a _Node for a folder. Any: mypy has no recursive alias here."""


class TreeBuilder:
    """Collects files, writing their blobs into a pack; `finish` writes the tree objects."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._root: _Node = {}

    def add(self, path: str, mode: int, data: bytes) -> None:
        """Add one file. mode: a git mode; a submodule's data is its commit id in hex.

        Raises Refused(path-escape) for a name that may not be used, Refused(unsupported) where
        the name is taken.
        """
        oid = bytes.fromhex(data.decode()) if mode == GITLINK else self._pack.add("blob", data)
        self.place(path, mode, oid)

    def place(self, path: str, mode: int, oid: bytes) -> None:
        """Add one file whose object is already known; faults as for `add`."""
        refuse_names((path,))
        if mode not in _MODES:
            raise Refused(_taken(path, f"its mode {mode:o} is none of git's"))
        *folders, name = path_bytes(path).split(b"/")
        node = self._root
        for folder in folders:
            node = node.setdefault(folder, {})
            if not isinstance(node, dict):
                raise Refused(_taken(path, f"{path_text(folder)} is a file there"))
        if name in node:
            raise Refused(_taken(path, "it comes twice"))
        node[name] = (mode, oid)

    def finish(self) -> str:
        """Write every folder; give the root's id."""
        return self._write(self._root).hex()

    def _write(self, node: _Node) -> bytes:
        entries = {
            name: (FOLDER, self._write(child)) if isinstance(child, dict) else child
            for name, child in node.items()
        }
        return self._pack.add("tree", folder_bytes(entries))


def refuse_names(paths: Iterable[str]) -> None:
    """Raise Refused(path-escape) for every path that may not be used."""
    faults = [
        Finding(
            "path-escape",
            f"the source holds a name that may not be used: {reason}",
            Where(file=path),
            found=path,
        )
        for path in paths
        if (reason := unsafe(path)) is not None
    ]
    if faults:
        raise Refused(*faults)


def _taken(path: str, why: str) -> Finding:
    return Finding(
        "unsupported", f"the source's {path} cannot be taken: {why}", Where(file=path), found=why
    )
