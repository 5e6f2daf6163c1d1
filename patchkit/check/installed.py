"""From a project to what is applied to installed packages: packets, each under its lock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchkit.derive.project import Project, find
from patchkit.derive.selection import Selection
from patchkit.errors import Finding, PatchkitError, Refused, UsageFault
from patchkit.series.lockfile import Chain, Lock
from patchkit.series.pins import Pin, Upstream
from patchkit.target.dist_info import find_dist, release
from patchkit.target.installed_packet import Packet
from patchkit.upstreams import known

if TYPE_CHECKING:
    from patchkit.engine.chain import Step

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)*)")


def distribution(upstream: Upstream) -> str:
    """The name under which an upstream is installed."""
    return upstream.pypi or upstream.name


def choose_pins(project: Project, names: Sequence[str], sites: Sequence[str]) -> list[Pin]:
    """The pins to apply: those named, else for each upstream that is installed the one of its
    installed release.

    Raises UsageFault where it is not clear which, Refused where none is installed.
    """
    if names:
        pins = [project.pins.pin(name) for name in dict.fromkeys(names)]
        for upstream in {pin.upstream for pin in pins}:
            same = [pin.name for pin in pins if pin.upstream == upstream]
            if len(same) > 1:
                raise UsageFault.because(f"{' and '.join(same)} are pins of one upstream")
        return pins
    by_upstream: dict[str, list[Pin]] = {}
    for pin in project.pins.pins.values():
        if project.has_series(pin.name):
            by_upstream.setdefault(pin.upstream, []).append(pin)
    if not by_upstream:
        return [project.one_pin(None)]
    chosen: list[Pin] = []
    missing: Refused | None = None
    for name, pins in by_upstream.items():
        try:
            dist = find_dist(sites, distribution(project.pins.upstreams[name]))
        except Refused as refusal:
            if refusal.findings[0].name != "missing-target":
                raise
            missing = missing or refusal
            continue
        fit = [pin for pin in pins if release(version_of(pin)) == release(dist.version)]
        if not fit and len(pins) > 1:
            raise UsageFault.because(
                f"--pin is needed: {dist.name} {dist.version} is installed, and series are for "
                + ", ".join(pin.name for pin in pins),
                next=f"--pin {pins[-1].name}",
            )
        chosen.append((fit or pins)[0])
    if not chosen and missing is not None:
        raise missing
    return chosen


def version_of(pin: Pin) -> str:
    """The release of a pin: what its name says, else the names of its files; "" where neither
    does."""
    stated = _RELEASE.fullmatch(pin.name)
    if stated:
        return stated[1]
    versions = set()
    for name in pin.files:
        if name.endswith(".tar.gz"):
            versions.add(name.removesuffix(".tar.gz").rpartition("-")[2])
        elif name.endswith(".whl") and name.count("-") >= 4:
            versions.add(name.split("-")[1])
    return versions.pop() if len(versions) == 1 else ""


def packet(
    project: Project,
    pin: Pin,
    selection: Selection,
    exclude: Sequence[str] = (),
    *,
    lock_only: bool = False,
) -> Packet:
    """What applying a selection of a pin's series to its installed package takes.

    lock_only: without the patches, for checking. Raises Refused where a digest is not the locked
    one, or the selection is not locked.
    """
    upstream = project.pins.upstream_of(pin)
    facts = known(upstream)
    lock = project.lock(pin.name)
    name = selection.stack.name if selection.stack is not None else None
    steps: tuple[Step, ...] = ()
    if not lock_only or (name is not None and name not in lock.stacks):
        # Loaded only here: these bring the engine and the store, which checking needs not.
        from patchkit.check import digests
        from patchkit.check.locked import first_patches, locked_chain
        from patchkit.engine.chain import Step

        chain = locked_chain(lock, selection)
        series = project.series(pin.name)
        wrong = digests.compare(pin, series, lock.proofs, lock)
        if wrong:
            raise Refused(*wrong)
        chosen = selection.of(series)
        steps = tuple(
            Step(patch, entry.strip, entry.reverse, taken)
            for patch, entry, taken in zip(series.patches, series.entries, chosen, strict=True)
        )
        lock = _with_chain(lock, name, first_patches(chain, sum(chosen)))
    return Packet(
        distribution(upstream),
        facts.package or upstream.package or distribution(upstream).replace("-", "_"),
        facts.root,
        version_of(pin),
        name,
        lock,
        steps,
        tuple(exclude),
        facts.native,
        selection.upto is None,
    )


def edited_since_lock(project: Project, pin: Pin, lock: Lock) -> list[Finding]:
    """How the series folder differs from its lock, by digests only: what `apply` would refuse.

    A folder that holds a lock and no series (an image that only checks) has nothing to differ.
    """
    if not project.has_series(pin.name):
        return []
    from patchkit.check.digests import compare_series

    listing = project.listing(pin.name)
    faults = [fault for found in listing.faults.values() for fault in found]
    return [*compare_series(pin, listing.file, listing.digests, lock), *faults]


def known_packets(start: str, sites: Sequence[str]) -> list[Packet]:
    """Every locked selection of the pins that are installed; none where no project is at hand, or
    its series is not as locked."""
    try:
        project = find(start)
        pins = choose_pins(project, (), sites)
        stacks = [*project.locked_stacks, None]
        return [packet(project, pin, Selection(stack)) for pin in pins for stack in stacks]
    except PatchkitError:
        return []


def _with_chain(lock: Lock, stack: str | None, chain: Chain) -> Lock:
    if stack is None:
        return replace(lock, series=chain)
    return replace(lock, stacks={**lock.stacks, stack: chain})
