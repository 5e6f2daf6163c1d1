"""Which releases stand between two pins."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from patchkit.derive.project import Project
from patchkit.errors import UsageFault
from patchkit.series.pins import Pin


def between(project: Project, old: Pin, new: Pin) -> list[Pin]:
    """The pins after `old` up to and with `new`, in order of version, of the same upstream.

    Only `new` where one of the two names is no version, or `new` is older.
    """
    first, last = version(old.name), version(new.name)
    if first is None or last is None or last <= first:
        return [new]
    found = [
        (v, pin)
        for pin in project.pins.pins.values()
        if pin.upstream == old.upstream
        and (v := version(pin.name)) is not None
        and first < v < last
    ]
    return [*(pin for _, pin in sorted(found, key=lambda row: row[0])), new]


def passed_over(project: Project, old: Pin, new: Pin) -> list[str]:
    """The later pins that are not looked at on the way to `new`, because it has no version: whether
    a commit comes after a release only its history says, and a release branch has its own."""
    own = version(old.name)
    if version(new.name) is not None or own is None:
        return []
    found = [
        (v, pin.name)
        for pin in project.pins.pins.values()
        if pin.upstream == old.upstream
        and (v := version(pin.name)) is not None
        and v > own
        and pin.commit != new.commit
    ]
    return [name for _, name in sorted(found)]


def version(name: str) -> Version | None:
    """A pin's name as a version; None where it is none."""
    try:
        return Version(name)
    except InvalidVersion:
        return None


def wanted(project: Project, pin: Pin, onto: list[str], every: bool) -> list[Pin]:
    """The releases that a drift table is of. Raises UsageFault where there is none."""
    if onto:
        return [project.pins.pin(name) for name in onto]
    own = version(pin.name)
    later = [
        other
        for other in project.pins.pins.values()
        if other.name != pin.name
        and other.upstream == pin.upstream
        and (every or own is None or (v := version(other.name)) is None or v > own)
    ]
    if not later:
        raise UsageFault.because(
            f"no later pin than {pin.name} is in pins.toml", next="patchkit pin NAME --add"
        )
    return sorted(later, key=lambda p: (version(p.name) or Version("0"), p.name))
