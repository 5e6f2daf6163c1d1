"""A new file written in pieces under a temporary name, and visible only when it is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from types import TracebackType

from patchkit.files.abandoned import abandoned, unfinished
from patchkit.files.root import disk_fault

_GONE = ".pk-gone"
_BUFFER = 1 << 18
"""Bytes of one write: a pack is thousands of small pieces."""


class Growing:
    """A file that is not there yet. `keep` gives it its name; leaving the `with` block drops it.

    at: the temporary path, in the folder (or at least on the file system) of the final name.
    Every method raises EnvironmentFault(disk).
    """

    def __init__(self, at: str) -> None:
        self.at = at
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._stream = os.fdopen(os.open(at, flags, 0o600), "w+b", _BUFFER)
        except OSError as error:
            raise disk_fault(error, at, "make") from error
        self._kept = False

    def __enter__(self) -> Growing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drop()

    def write(self, pieces: Iterable[bytes]) -> None:
        """Append `pieces`."""
        try:
            self._stream.writelines(pieces)
        except OSError as error:
            raise disk_fault(error, self.at, "write") from error

    def overwrite_head(self, data: bytes) -> None:
        """Put `data` over the first bytes; the place for the next write stays the end."""
        try:
            self._stream.seek(0)
            self._stream.write(data)
            self._stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise disk_fault(error, self.at, "write") from error

    def blocks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """Everything written so far, in blocks of `size` bytes."""
        try:
            self._stream.seek(0)
            while block := self._stream.read(size):
                yield block
            self._stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise disk_fault(error, self.at, "read") from error

    def keep(self, path: str, mode: int = 0o644) -> None:
        """Sync, set the mode (whatever the umask) and rename to `path`, replacing what is there."""
        try:
            self._stream.flush()
            os.fchmod(self._stream.fileno(), mode)
            os.fsync(self._stream.fileno())
            self._stream.close()
            os.rename(self.at, path)
        except OSError as error:
            raise disk_fault(error, path, "write") from error
        self._kept = True

    def drop(self) -> None:
        """Remove what was written, unless it is kept."""
        with contextlib.suppress(OSError):
            self._stream.close()
        if not self._kept:
            with contextlib.suppress(OSError):
                os.unlink(self.at)


def remove_file(path: str) -> None:
    """Remove one file; missing is fine. Raises EnvironmentFault(disk)."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_fault(error, path, "remove") from error


def remove_folder(path: str) -> None:
    """Remove a folder and all below it: first renamed aside, so that nobody sees half of it.

    Missing is fine. Links are removed, never followed. What a killed removal of the same folder
    left aside goes, too. Raises EnvironmentFault(disk).
    """
    aside = unfinished(path, _GONE)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, aside)
        for left in abandoned(path, _GONE, running=True):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(left)
    except OSError as error:
        raise disk_fault(error, path, "remove") from error


def remove_empty_folder(path: str) -> None:
    """Remove a folder that holds nothing; leave it where it does, or cannot be removed."""
    with contextlib.suppress(OSError):
        os.rmdir(path)
