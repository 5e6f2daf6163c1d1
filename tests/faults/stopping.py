"""Ways in which a command is stopped: at a call that writes, or at a git that it has started."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.unit.target.killing import half_written, refusing

Stop = Callable[[str, tuple[Any, ...]], None]


def killing(name: str, args: tuple[Any, ...]) -> None:
    """As a power cut: what was being written is half there."""
    half_written(name, args)
    os.kill(os.getpid(), signal.SIGKILL)


def told(number: int) -> Stop:
    """The signal `number` comes at that moment; the call is made after it where one returns."""

    def stop(name: str, args: tuple[Any, ...]) -> None:
        os.kill(os.getpid(), number)

    return stop


STOPS: dict[str, Stop] = {
    "kill": killing,
    "term": told(signal.SIGTERM),
    "interrupt": told(signal.SIGINT),
    "full": refusing(errno.ENOSPC),
    "broken": refusing(errno.EIO),
    "denied": refusing(errno.EACCES),
}
"""Stops at a call that writes."""
SYSTEM = ("full", "broken", "denied", "git-refuses", "git-dies")
"""After which the command itself says what was wrong."""

_REFUSES = "echo 'fatal: write error: No space left on device' >&2; exit 128"
_DIES = '"$@"; kill -9 $$'
GITS = {
    "git-refuses": lambda line: ["/bin/sh", "-c", _REFUSES],
    "git-dies": lambda line: ["/bin/sh", "-c", _DIES, "sh", *line],
}
"""Stops at a git: it does nothing and says that the disk is full; it does all and is killed."""
KINDS = (*STOPS, *GITS)


def never(name: str, args: tuple[Any, ...]) -> None:
    """For a run that is not to be stopped."""
    raise AssertionError(f"{name} was not to be stopped")


@contextmanager
def git_stopped_at(number: int, kind: str) -> Iterator[list[str]]:
    """Put something else in the place of the `number`-th git that is started. Their first words
    are in the list."""
    seen: list[str] = []
    begin = subprocess.Popen.__init__

    def started(self: Any, args: Sequence[str], *rest: Any, **more: Any) -> None:
        if os.path.basename(args[0]) == "git":
            seen.append(args[-1])
            if len(seen) == number + 1:
                args = GITS[kind](args)
        begin(self, args, *rest, **more)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        subprocess.Popen.__init__ = begin  # type: ignore[method-assign]
