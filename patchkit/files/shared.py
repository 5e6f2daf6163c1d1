"""A mark that a folder is in use: many may hold it; who wants to remove the folder must wait."""

from __future__ import annotations

import contextlib
import fcntl
import os

from patchkit.files.root import disk_fault


class InUse:
    """Holds the lock file `path` (made where missing) together with others, until `release`.

    The lock dies with its process. Raises EnvironmentFault(disk) where the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        self._handle: int | None = _open(path)
        # On a file system without locks (some network mounts) the mark is simply not there:
        # clearing the cache is then the user's own risk.
        with contextlib.suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_SH)

    def release(self) -> None:
        """Give the mark back; again is fine."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def nobody_uses(path: str) -> InUse | None:
    """The lock file `path` held alone; None where somebody holds it."""
    mark = InUse.__new__(InUse)
    handle = _open(path)
    mark._handle = handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mark.release()
        return None
    return mark


def _open(path: str) -> int:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise disk_fault(error, path, "lock") from error
