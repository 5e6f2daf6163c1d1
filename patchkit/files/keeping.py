"""A root whose files keep the permission bits and the owner that they have.

git knows two modes; an installer chose among more (a umask of 002, a shared group), and what is
taken back must be as it was.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from patchkit.engine.model import EXECUTABLE, SYMLINK, File
from patchkit.files.root import Bits, Root, disk_fault


class KeepingRoot(Root):
    """As `Root`; `put` gives a file the bits of the one that it replaces.

    known: permission bits of files and folders that are not there now, or not as they were.
    """

    def __init__(self, at: str | os.PathLike[str], known: Mapping[str, int] | None = None) -> None:
        super().__init__(at)
        self.known: dict[str, int] = dict(known or {})

    def bits(self, path: str) -> Bits | None:
        """Bits and owner of the file or folder at `path`, links not followed; None without one."""
        try:
            with self._folder_of(path) as (fd, name):
                return _bits(os.stat(name, dir_fd=fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, path: str, file: File, *, sync: bool = True, bits: Bits | None = None) -> None:
        if bits is None and file.mode != SYMLINK:
            bits = self._kept(path, file)
        made = [f for f in _folders(path) if f in self.known and self.bits(f) is None]
        super().put(path, file, sync=sync, bits=bits)
        for folder in made:
            self._chmod(folder, self.known[folder])

    def _kept(self, path: str, file: File) -> Bits:
        found = self.bits(path)
        default = 0o755 if file.mode == EXECUTABLE else 0o644
        mode = self.known.get(path, found.mode if found else default)
        # Executable is what git's mode says; who else may run it follows who may read it.
        mode = mode | (mode & 0o444) >> 2 if file.mode == EXECUTABLE else mode & ~0o111
        owner = found or self._folder(path)
        return Bits(mode, owner.uid, owner.gid)

    def _folder(self, path: str) -> Bits:
        for folder in _folders(path):
            found = self.bits(folder)
            if found is not None:
                return found
        return _bits(os.stat(self.at))

    def _chmod(self, path: str, mode: int) -> None:
        try:
            with self._folder_of(path) as (fd, name):
                os.chmod(name, mode, dir_fd=fd)
        except OSError as error:
            raise disk_fault(error, path, "chmod") from error


def _folders(path: str) -> Iterator[str]:
    """The folders that hold `path`, the innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _bits(found: os.stat_result) -> Bits:
    return Bits(stat.S_IMODE(found.st_mode) & 0o777, found.st_uid, found.st_gid)
