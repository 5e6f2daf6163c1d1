"""The `patchkit` command, and `python -m patchkit`: a process that runs one command and ends."""

from __future__ import annotations

import gc
import os
import sys

from patchkit.cli.main import main

_COLLECT_AFTER = 1_000_000
"""Containers made before the garbage collector looks. A series of 500 patches is a hundred
thousand tuples and lists that stay, and one look at them takes as long as applying them."""


def command() -> None:
    """Run the command of `sys.argv` and end the process; never returns."""
    gc.set_threshold(_COLLECT_AFTER, 20, 100)
    try:
        main()
    except SystemExit as stop:
        leave(stop.code if isinstance(stop.code, int) else 0)


def leave(code: int) -> None:
    """End the process without taking every object apart first, which takes as long as some
    commands. Whatever holds something open has closed it by now; coverage has not."""
    if "coverage" in sys.modules:
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    command()
