"""One pin checked: everything that can be said of it, in one run."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.check import chains, digests, unused
from patchkit.derive.base import Base, Bases
from patchkit.derive.builds import native_without_guard
from patchkit.derive.derive import derive, trees_of
from patchkit.derive.project import Project
from patchkit.derive.proofs import locked_proofs
from patchkit.derive.records import check_records
from patchkit.derive.relock import chain_from
from patchkit.derive.selection import WHOLE, Selection
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.series.folder import Series
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin, Stack


@dataclass(frozen=True)
class StackState:
    """One stack: how many patches it has, the patched tree (empty where it does not apply)."""

    name: str
    patches: int
    tree: str
    state: str


@dataclass(frozen=True)
class PinReport:
    """What check found of one pin. base: the base tree's id; stacks in name order."""

    pin: str
    source: str
    base: str
    stacks: tuple[StackState, ...]
    findings: tuple[Finding, ...]
    not_verified: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """clean, drift, no series, or not verified (the source could not be had)."""
        if self.not_verified:
            return "not verified"
        if any(not f.note for f in self.findings):
            return "drift"
        return "clean" if self.stacks else "no series"


def check_pin(
    project: Project, pin: Pin, bases: Bases, *, stack: str | None = None, source: str | None = None
) -> PinReport:
    """Compare digests, then apply everything again and compare every id with the lock.

    stack: only that stack (the whole series is always checked). Where the source cannot be had
    the digests are compared all the same, and the report names what was not verified.
    """
    findings: list[Finding] = []
    if not project.has_series(pin.name) and _orphans(project, pin):
        return PinReport(pin.name, "", "", (), (_no_series_file(project, pin),))
    if not project.has_series(pin.name):
        return PinReport(pin.name, "", "", (), tuple(unused.incomplete(pin)))
    try:
        series = project.series(pin.name, strict=False)
    except Refused as refusal:
        return PinReport(pin.name, "", "", (), refusal.findings)
    findings.extend(series.findings)
    lock = _lock(project, pin, findings)
    if lock is not None:
        proofs = locked_proofs(project, pin.name, series)
        findings.extend(digests.compare(pin, series, proofs, lock))
        findings.extend(check_records(project, pin.name, series, lock))
    findings.extend(unused.notes(pin, series, project.pins.stacks.values()))
    wanted = [None, *(s for s in project.locked_stacks if stack in (None, s.name))]
    try:
        base = bases.get(pin, source)
    except EnvironmentFault as error:
        unverified = ("the base tree", *(f"stack {s.name}" for s in wanted if s is not None))
        return PinReport(
            pin.name, "", "", (), (*findings, *error.findings), not_verified=unverified
        )
    findings.extend((*base.gaps, *base.drift, *bases.verify(base)))
    upstream = project.pins.upstream_of(pin)
    findings.extend(native_without_guard(upstream, series))
    states: list[StackState] = []
    if not series.refused:
        for each in wanted:
            states.append(_stack(pin, each, series, lock, bases, base, findings))
    return PinReport(
        pin.name, base.source, base.tree_id, tuple(states), tuple(dict.fromkeys(findings))
    )


def _orphans(project: Project, pin: Pin) -> list[str]:
    """Patches and locks in a pin's folder that has no series file."""
    folder = project.series_folder(pin.name)
    return sorted(p.name for p in (*folder.glob("*.patch"), *folder.glob("series.lock")))


def _no_series_file(project: Project, pin: Pin) -> Finding:
    found = _orphans(project, pin)
    return Finding(
        "missing-patch",
        f"the folder of {pin.name} holds patches or a lock, and no series file that names them",
        Where(file=f"series/{pin.name}/series"),
        expected="a file named series",
        found=", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else ""),
        next=f"git checkout series/{pin.name}/series, or remove the folder",
    )


def _lock(project: Project, pin: Pin, findings: list[Finding]) -> Lock | None:
    try:
        return project.lock(pin.name)
    except Refused as refusal:
        findings.extend(refusal.findings)
        return None


def _stack(
    pin: Pin,
    stack: Stack | None,
    series: Series,
    lock: Lock | None,
    bases: Bases,
    base: Base,
    findings: list[Finding],
) -> StackState:
    name = stack.name if stack is not None else WHOLE
    tree = base.tree(bases.store)
    derived = derive(series, tree, Selection(stack))
    if not derived.ok:
        # The same failure shows in every stack that holds the patch: said once.
        findings.extend(f for f in derived.findings if f not in findings)
        return StackState(name, len(derived.names), "", "refused")
    findings.extend(f for f in derived.findings if f not in findings)
    trees = trees_of(bases.store, derived, base.tree_id)
    if lock is None:
        return StackState(name, len(derived.names), trees[-1], "not locked")
    try:
        locked = lock.chain(stack.name if stack is not None else None)
    except KeyError:
        findings.append(
            Finding(
                "lock-stale",
                f"stack {name} is not in the lock",
                expected=f"a chain for {name}",
                found=", ".join(lock.stacks) or "none",
                next=f"patchkit lock --pin {pin.name}",
            )
        )
        return StackState(name, len(derived.names), trees[-1], "not locked")
    wrong = chains.compare(pin.name, name, locked, chain_from(derived, tree, {base.source: trees}))
    findings.extend(f for f in wrong if f not in findings)
    return StackState(name, len(derived.names), trees[-1], "drift" if wrong else "clean")
