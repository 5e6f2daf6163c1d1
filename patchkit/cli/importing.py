"""Whether `import` takes in what is elsewhere, or takes back what stands in the series folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import UsageFault

if TYPE_CHECKING:
    from patchkit.authoring.importing import How
    from patchkit.authoring.sealing import Ready
    from patchkit.authoring.session import Session
    from patchkit.authoring.when import When
    from patchkit.series.pins import Pin


def bring_in(
    held: Session,
    pin: Pin,
    paths: Sequence[str],
    how: How,
    moment: When,
    name: str | None,
    after: str | None,
    first: bool,
) -> Ready:
    """The series with what came."""
    from patchkit.authoring.importing import bring, take_back, tidy
    from patchkit.authoring.incoming import arrive

    folder = os.fspath(held.project.series_folder(pin.name))
    own = _own(held, pin, paths, folder)
    if own is not None:
        for option, given in (
            ("--name", name),
            ("--after", after),
            ("--first", first),
            ("--exclude", how.exclude),
        ):
            if given:
                raise UsageFault.because(
                    f"{option} goes with patches from elsewhere: these are in the series",
                    next="patchkit rename, patchkit move",
                )
        series = take_back(held.project, pin.name, how)
        return tidy(held.standing(pin, series), own or None, how, moment)
    standing = held.standing(pin)
    arrived = arrive(paths, standing.names, folder=folder, name=name)
    return bring(standing, arrived, how, moment, after=after, first=first)


def _own(held: Session, pin: Pin, paths: Sequence[str], folder: str) -> list[str] | None:
    """The patches of the series that the paths are; [] for the folder itself; None for others."""
    from patchkit.authoring.mend import members

    if not held.project.has_series(pin.name):
        return None
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return [] if os.path.samefile(paths[0], folder) else None
    if not all(os.path.isfile(path) for path in paths):
        return None
    inside = [os.path.realpath(folder) in os.path.realpath(path) for path in paths]
    return members(held.project, pin.name, paths) if all(inside) else None
