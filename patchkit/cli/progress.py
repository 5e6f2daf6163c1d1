"""A progress bar on standard error for what takes more than a second; silent in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchkit.engine.plain import plain

if TYPE_CHECKING:
    from rich.progress import Progress

GRACE = 0.7
"""Seconds before a bar appears at all."""


class Bar:
    """Called with (label, done, total); total 0 where it is not known."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._tasks: dict[str, int] = {}

    def __call__(self, label: str, done: int, total: int = 0) -> None:
        if self._quiet or time.monotonic() - self._began < GRACE:
            return
        if self._progress is None:
            self._progress = _drawn()
            self._progress.start()
        if label not in self._tasks:
            self._tasks[label] = self._progress.add_task(plain(label), total=total or None)
        self._progress.update(self._tasks[label], completed=done, total=total or None)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Take the bar off the screen."""
        if self._progress is not None:
            self._progress.stop()


def _drawn() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    # A label may name a file: its brackets are no markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Bar]:
    """A bar for the time of the block."""
    bar = Bar(quiet)
    try:
        yield bar
    finally:
        bar.stop()
