"""A project: the folder that holds the nearest pins.toml upwards, and what stands in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.atomic import read_file
from patchkit.files.growing import remove_empty_folder
from patchkit.files.lock import folder_locked
from patchkit.files.root import OWN, Root
from patchkit.files.transaction import Recovered, pending, recover
from patchkit.series.listing import Listing, read_listing
from patchkit.series.lockfile import FILE as LOCK
from patchkit.series.lockfile import Lock
from patchkit.series.lockjson import loads
from patchkit.series.pins import FILE as PINS
from patchkit.series.pins import RELATIVE, Pin, Pins, Stack, load_pins

if TYPE_CHECKING:
    from patchkit.series.folder import Series

JOURNAL = os.path.join(OWN, "journal")
"""Where a verb that changes the project keeps the old bytes while it does."""


@dataclass(frozen=True)
class Project:
    """The folder of a pins.toml, and its contents. recovered: what a killed verb had begun to
    change, all of it put back.
    """

    folder: Path
    pins: Pins
    recovered: Recovered | None = None

    def series_folder(self, pin: str) -> Path:
        """Where the series of `pin` stands, whether or not it does."""
        return self.folder / "series" / pin

    def has_series(self, pin: str) -> bool:
        """Whether the pin has a series file. A pin without one is not an error."""
        return (self.series_folder(pin) / "series").is_file()

    def series(self, pin: str, *, strict: bool = True) -> Series:
        """The series of `pin`. Raises Refused with all that is wrong with it."""
        from patchkit.series.folder import parse_listing

        return parse_listing(self.listing(pin), strict=strict)

    def listing(self, pin: str) -> Listing:
        """The series of `pin`, its patches not parsed. Raises Refused where there is none, or its
        series file cannot be read.
        """
        self.pins.pin(pin)
        if not self.has_series(pin):
            have = [name for name in self.pins.pins if self.has_series(name)]
            raise Refused(
                Finding(
                    "missing-patch",
                    f"pin {pin} has no series",
                    Where(file=os.path.join("series", pin, "series")),
                    expected=f"a series for {pin}",
                    found="series for " + ", ".join(have) if have else "no series at all",
                    next=f"patchkit rebase --pin {self._beside(pin, have)} --onto {pin} --plan"
                    if have
                    else "patchkit new NAME --pin " + pin,
                )
            )
        return read_listing(self.series_folder(pin))

    def _beside(self, pin: str, have: list[str]) -> str:
        """The one of `have` that stands nearest to `pin` in pins.toml."""
        names = list(self.pins.pins)
        return min(have, key=lambda name: abs(names.index(name) - names.index(pin)))

    def lock(self, pin: str) -> Lock:
        """The lock of `pin`. Raises Refused: lock-stale where there is none, bad-lock."""
        at = self.series_folder(pin) / LOCK
        if not at.is_file():
            raise Refused(
                Finding(
                    "lock-stale",
                    f"the series of {pin} has no lock: what applying must give is not recorded",
                    Where(file=os.path.join("series", pin, LOCK)),
                    expected=f"a file {LOCK}",
                    found="nothing",
                    next=f"patchkit lock --pin {pin}",
                )
            )
        return loads(read_file(at), os.path.join("series", pin, LOCK))

    def one_pin(self, name: str | None) -> Pin:
        """The pin of that name; without a name the only one that has a series.

        Raises Refused where there is none of that name, UsageFault where it is not clear which.
        """
        if name is not None:
            return self.pins.pin(name)
        have = [n for n in self.pins.pins if self.has_series(n)]
        if len(have) == 1:
            return self.pins.pin(have[0])
        raise UsageFault.because(
            "--pin is needed: "
            + (f"series for {', '.join(have)}" if have else "no pin has a series"),
            next=f"--pin {(have or list(self.pins.pins))[0]}"
            if self.pins.pins
            else "patchkit pin RELEASE --add",
        )

    def stack(self, name: str) -> Stack:
        """The stack of that name; `default` needs no entry. Raises Refused."""
        if name == "default" and name not in self.pins.stacks:
            return Stack("default")
        return self.pins.stack(name)

    @cached_property
    def locked_stacks(self) -> tuple[Stack, ...]:
        """Every stack that a lock speaks of: those of pins.toml, and `default`."""
        stacks = dict(self.pins.stacks)
        stacks.setdefault("default", Stack("default"))
        return tuple(stacks[name] for name in sorted(stacks))


def find(start: str | os.PathLike[str]) -> Project:
    """The project at or above `start`; what a killed verb left half done is taken back first.

    Raises Refused(not-a-project, bad-pins, journal), UsageFault where there is no such folder.
    """
    at = Path(os.path.abspath(start))
    if not at.is_dir():
        raise UsageFault.because(f"-C {start}: there is no such folder", next="-C DIR")
    for folder in (at, *at.parents):
        if (folder / PINS).is_file():
            recovered = _recovered(folder) if pending(folder / JOURNAL) else None
            pins = load_pins(read_file(folder / PINS, 4 << 20), str(folder / PINS))
            return Project(folder, rooted(pins, folder), recovered)
    raise Refused(
        Finding(
            "not-a-project",
            f"no {PINS} in {at} or above it",
            expected=f"a folder with a {PINS}",
            found=str(at),
            next="patchkit init, or patchkit -C DIR with the folder of a project",
        )
    )


def rooted(pins: Pins, folder: Path) -> Pins:
    """The pins, with git addresses that are relative paths taken from the project's folder."""
    upstreams = {
        name: replace(upstream, git=os.path.normpath(os.path.join(folder, upstream.git)))
        if upstream.git.startswith(RELATIVE)
        else upstream
        for name, upstream in pins.upstreams.items()
    }
    return replace(pins, upstreams=upstreams)


def _recovered(folder: Path) -> Recovered | None:
    """Roll back what was begun in `folder`; a verb that is still at it is waited for."""
    with folder_locked(folder):
        found = recover(Root(folder), folder / JOURNAL)
        remove_empty_folder(os.path.join(folder, OWN))
    return found
