"""Which module of patchkit a write comes from, seen by an audit hook: no spelling escapes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import patchkit

ROOT = os.path.join(str(Path(patchkit.__file__).parent), "")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NAMES = "chmod chown link mkdir remove rename rmdir symlink truncate utime setxattr"
_EVENTS = frozenset(f"os.{name}" for name in _NAMES.split())
_MAY = {
    ("prove/children.py", "open"),
    ("prove/children.py", "os.remove"),
    ("bring/copied.py", "os.utime"),
}
"""What a child says goes to a file without a name; times of a copy of our own."""


def watch_writers(wrong: list[str]) -> None:
    """From now on put into `wrong` each write of this process that does not come from the files
    layer. It cannot be taken back: for a child."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            # A number is a handle that is open already: the pipe to a git.
            if isinstance(args[0], int) or args[0] == os.devnull or not args[2] & _WRITING:
                return
        elif event not in _EVENTS:
            return
        module = _module()
        if module and not module.startswith("files/") and (module, event) not in _MAY:
            wrong.append(f"{module}: {event} {args[:2]}")

    sys.addaudithook(hook)


def _module() -> str:
    """The module of patchkit that called, the library's own frames passed over; "" for none."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(ROOT):
            return name.removeprefix(ROOT)
        if name.startswith("<frozen importlib"):
            return ""  # bytecode of a module that is imported
        frame = frame.f_back  # type: ignore[assignment]
    return ""
