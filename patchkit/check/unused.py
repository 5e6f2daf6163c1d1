"""Notes on what a project holds and nothing uses, and on what is not complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from patchkit.errors import Finding, Where
from patchkit.series.folder import Series
from patchkit.series.pins import Pin, Stack


def notes(pin: Pin, series: Series, stacks: Iterable[Stack]) -> list[Finding]:
    """Guards that no stack turns on, stacks whose guard no patch has, a short commit."""
    return [*_guards(pin, series, list(stacks)), *incomplete(pin)]


def incomplete(pin: Pin) -> Iterator[Finding]:
    """pin-incomplete, where only the first digits of the commit are known.

    A pin that states neither a commit nor a file is a folder's: its lock alone says what it is.
    """
    if not pin.complete and (pin.commit_prefix or pin.files):
        yield Finding(
            "pin-incomplete",
            f"of pin {pin.name} only the first digits of the commit are known",
            Where(file="pins.toml"),
            expected="commit = 40 hex digits",
            found=f"commit-prefix = {pin.commit_prefix}" if pin.commit_prefix else "no commit",
            next=f"patchkit pin {pin.name} --complete (needs a network)",
            note=True,
        )


def _guards(pin: Pin, series: Series, stacks: list[Stack]) -> Iterator[Finding]:
    used = {entry.guard for entry in series.file.entries if entry.guard is not None}
    turned_on = {guard for stack in stacks for guard in stack.guards}
    for guard in sorted(used - turned_on):
        yield Finding(
            "unused",
            f"no stack of pins.toml turns on the guard {guard}: its patches are only in --all",
            Where(file=os.path.join("series", pin.name, "series")),
            expected=f"a stack with {guard} among its guards",
            found="stacks " + (", ".join(s.name for s in stacks) or "none"),
            note=True,
        )
    for stack in stacks:
        for guard in stack.guards:
            if guard not in used:
                yield Finding(
                    "unused",
                    f"stack {stack.name} turns on {guard}, which no patch of {pin.name} has",
                    Where(file="pins.toml"),
                    expected=f"a patch with #+{guard} in series/{pin.name}/series",
                    found="guards " + (", ".join(sorted(used)) or "none"),
                    note=True,
                )
