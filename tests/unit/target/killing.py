"""Stop a command at its n-th write: by SIGKILL in a child, or by an error of the system."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = (
    "rename replace unlink rmdir mkdir fchmod fsync chmod symlink link ftruncate pwrite utime open"
)
CALLS = tuple(_NAMES.split())
_WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR


class _Writing:
    """A stream that is written to, of which every write is counted."""

    def __init__(self, stream: Any, count: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._stream = stream
        self._count = count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *how: Any) -> None:
        self._stream.close()

    def write(self, data: bytes) -> int:
        self._count("write", (self._stream, data))
        return int(self._stream.write(data))

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self._count("write", (self._stream, b""))
        self._stream.writelines(pieces)


@contextmanager
def stopped_at(number: int, stop: Callable[[str, tuple[Any, ...]], None]) -> Iterator[list[str]]:
    """Call `stop` instead of the `number`-th call that changes the disk. The names of the calls
    so far are in the list."""
    seen: list[str] = []
    real = {name: getattr(os, name) for name in CALLS}

    def count(name: str, args: tuple[Any, ...]) -> None:
        seen.append(name)
        if len(seen) == number + 1:
            stop(name, args)

    def opened(handle: int, mode: str = "r", *args: Any, **more: Any) -> Any:
        stream = fdopen(handle, mode, *args, **more)
        return _Writing(stream, count) if set(mode) & set("wax+") and "b" in mode else stream

    fdopen = os.fdopen

    def wrap(name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            flags = args[1] if name == "open" and len(args) > 1 else 0
            if name != "open" or flags & _WRITING:
                count(name, args)
            return real[name](*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrap(name))
    os.fdopen = opened
    try:
        yield seen
    finally:
        os.fdopen = fdopen
        for name, function in real.items():
            setattr(os, name, function)


def half_written(name: str, args: tuple[Any, ...]) -> None:
    """What a power cut leaves of the file that is being written, or about to be synced."""
    try:
        if name == "write":
            args[0].write(args[1][: len(args[1]) // 2])
            args[0].flush()
        elif name == "fsync":
            os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
    except OSError:
        pass  # a folder


def killed_at(number: int, command: Callable[[], object]) -> bool:
    """Run `command` in a child that dies by SIGKILL at its `number`-th write; a file that is about
    to be synced is cut in half first. Whether it died: False where it came to its end."""

    def die(name: str, args: tuple[Any, ...]) -> None:
        half_written(name, args)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            with stopped_at(number, die):
                command()
        except BaseException:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def refusing(code: int) -> Callable[[str, tuple[Any, ...]], None]:
    """For `stopped_at`: the system refuses the call."""

    def refuse(name: str, args: tuple[Any, ...]) -> None:
        raise OSError(code, os.strerror(code))

    return refuse


NO_SPACE = errno.ENOSPC
DENIED = errno.EACCES
