"""One writer at a time: an advisory lock that dies with its process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.root import disk_fault


@contextmanager
def locked(
    path: str | os.PathLike[str],
    *,
    wait: float = 60.0,
    waiting: Callable[[str], None] | None = None,
    remove: bool = False,
) -> Iterator[None]:
    """Hold the lock file `path` (made where missing, its folder too).

    remove: take the file away afterwards, for a place in which none may be left. Only its holder
    does, and whoever waited for it looks whether the file is still the one that it has. wait:
    seconds to wait for another process; `waiting` is called once with its pid when there is one.
    Raises EnvironmentFault(disk) when time runs out or the file cannot be made.
    """
    at = os.fspath(path)
    while True:
        try:
            os.makedirs(os.path.dirname(at) or ".", exist_ok=True)
            handle = os.open(at, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise disk_fault(error, at, "lock") from error
        try:
            _acquire(handle, at, wait, waiting)
        except BaseException:
            os.close(handle)
            raise
        if _still_there(handle, at):
            break
        os.close(handle)  # its holder removed the file with its folder: lock the new one
    try:
        with contextlib.suppress(OSError):  # a full disk: the lock is held, its holder unnamed
            os.ftruncate(handle, 0)
            os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        if remove:
            with contextlib.suppress(OSError):
                os.unlink(at)
        os.close(handle)


@contextmanager
def folder_locked(path: str | os.PathLike[str], *, wait: float = 60.0) -> Iterator[None]:
    """Hold the folder `path` itself: for a place in which no lock file may be left.

    Raises EnvironmentFault(disk) when `wait` seconds run out or the folder cannot be opened.
    """
    at = os.fspath(path)
    try:
        handle = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise disk_fault(error, at, "lock") from error
    try:
        _acquire(handle, at, wait, None)
        yield
    finally:
        os.close(handle)


def _still_there(handle: int, at: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(at))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        return os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"  # a folder holds no pid


def _acquire(handle: int, at: str, wait: float, waiting: Callable[[str], None] | None) -> None:
    until = time.monotonic() + wait
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            if not told and waiting is not None:
                waiting(holder)
                told = True
            if time.monotonic() >= until:
                raise EnvironmentFault(
                    Finding(
                        "disk",
                        f"another patchkit (pid {holder}) is writing there",
                        expected="the lock free",
                        found=f"{at} held for more than {wait:g} s",
                        next="wait until it is done, and run the command again",
                    )
                ) from None
            time.sleep(0.05)
        else:
            return
