"""Stop a command at its n-th write: by SIGKILL in a child, or by an error of the system."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CALLS = ("rename", "unlink", "rmdir", "mkdir", "fchmod", "fsync", "chmod", "symlink", "open")
_WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR


@contextmanager
def stopped_at(number: int, stop: Callable[[str, tuple[Any, ...]], None]) -> Iterator[list[str]]:
    """Call `stop` instead of the `number`-th call that changes the disk. The names of the calls
    so far are in the list."""
    seen: list[str] = []
    real = {name: getattr(os, name) for name in CALLS}

    def wrap(name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            flags = args[1] if name == "open" and len(args) > 1 else 0
            if name != "open" or flags & _WRITING:
                seen.append(name)
                if len(seen) == number + 1:
                    stop(name, args)
            return real[name](*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrap(name))
    try:
        yield seen
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def killed_at(number: int, command: Callable[[], object]) -> bool:
    """Run `command` in a child that dies by SIGKILL at its `number`-th write; a file that is about
    to be synced is cut in half first. Whether it died: False where it came to its end."""

    def die(name: str, args: tuple[Any, ...]) -> None:
        if name == "fsync" and args:
            try:
                os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
            except OSError:
                pass  # a folder
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
