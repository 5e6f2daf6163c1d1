"""What an installed package is now, without applying anything: fit for an entry point.

Touched files are hashed and compared with the lock and with RECORD; all others are compared with
RECORD by size only, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.files.root import Root
from patchkit.series import state as lockstate
from patchkit.series.state import TreeState, classify
from patchkit.target.dist_info import Dist
from patchkit.target.installed_base import (
    edited_since,
    identity,
    journal_finding,
    lookup_of,
    others_edited,
    read_state,
    record_disagrees,
)
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_state import State
from patchkit.target.installed_words import Words, of

PRISTINE = lockstate.PRISTINE
PATCHED = lockstate.PATCHED
UPTO = lockstate.UPTO
MIXED = lockstate.MIXED
FOREIGN = lockstate.FOREIGN
OTHER = "other"
"""Patched as its own record says, and not with what is asked about."""


@dataclass(frozen=True)
class Status:
    """One package.

    kind: PRISTINE, PATCHED, UPTO, MIXED (partly applied), FOREIGN or OTHER. state: what is
    recorded. count, patch: of UPTO, how many patches and the last of them. paths: each touched
    site path with its kind and the last patch whose effect is found.
    """

    dist: Dist
    kind: str
    state: State | None
    count: int = 0
    patch: str = ""
    paths: tuple[tuple[str, str, str], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)

    @property
    def words(self) -> str:
        """The state for people: which stack, which series."""
        if self.kind in (PATCHED, OTHER) and self.state is not None:
            how = "" if self.state.made_by == "in-place" else ", as built"
            return f"patched ({of(self.state)}{how})"
        if self.kind == UPTO:
            return f"patched up to {self.patch} ({self.count} patches)"
        return {MIXED: "partly applied", FOREIGN: "edited by hand"}.get(self.kind, self.kind)


def status(dist: Dist, packet: Packet | None = None, words: Words = Words()) -> Status:  # noqa: B008
    """What `dist` is; with `packet` compared with that, else with its own record."""
    root = Root(dist.site)
    state = read_state(dist)
    stopped = journal_finding(dist.site, words)
    found = [stopped] if stopped is not None else []
    if packet is not None:
        return _compared(dist, packet, root, state, found, words)
    if state is None:
        return Status(
            dist, PRISTINE, None, findings=(*found, *others_edited(dist, root, (), read=False))
        )
    edited = edited_since(dist, state, root)
    touched = [state.site_path(path) for path in state.chain.paths]
    wrong = {f.where.file for f in edited}
    paths = tuple((p, FOREIGN if p in wrong else PATCHED, "") for p in sorted(touched))
    notes = others_edited(dist, root, touched, read=False)
    kind = FOREIGN if edited else PATCHED
    return Status(dist, kind, state, paths=paths, findings=(*found, *edited, *notes))


def _compared(
    dist: Dist,
    packet: Packet,
    root: Root,
    state: State | None,
    found: list[Finding],
    words: Words,
) -> Status:
    found = [*found, *identity(dist, packet.lock.pin, packet.version, packet.package)]
    tree = classify(packet.lock, packet.stack, lookup_of(root, packet.site_path), packet.wanted)
    paths = tuple((packet.site_path(p.path), p.kind, p.patch) for p in tree.paths)
    kind = tree.kind
    touched = [path for path, _, _ in paths]
    if state is not None:
        touched += [state.site_path(path) for path in state.chain.paths]
    if kind == PATCHED or (kind == PRISTINE and not packet.chain.patches):
        found += _record(dist, root, touched)
        if state is not None and not packet.is_state(state) and packet.chain.patches:
            found.append(_reworded(dist, state, packet))
    elif state is not None and kind != UPTO and not edited_since(dist, state, root):
        kind = OTHER
        found.append(_other(dist, state, packet, words))
    elif kind == FOREIGN:
        found += _foreign(dist, tree, packet, root, words)
    else:
        found.append(_partly(dist, tree, packet, words))
    found += others_edited(dist, root, touched, read=False)
    return Status(dist, kind, state, max(tree.count, 0), tree.patch, paths, tuple(found))


def _record(dist: Dist, root: Root, touched: Sequence[str]) -> list[Finding]:
    rows = dist.record.by_path
    found = []
    for path in sorted(set(touched)):
        file = root.get(path)
        wrong = record_disagrees(rows.get(path), path, file) if file is not None else None
        found += [wrong] if wrong is not None else []
    return found


def _foreign(
    dist: Dist, tree: TreeState, packet: Packet, root: Root, words: Words
) -> list[Finding]:
    rows = dist.record.by_path
    found = []
    for each in tree.paths:
        if each.kind != FOREIGN:
            continue
        path = packet.site_path(each.path)
        file = root.get(path)
        record = record_disagrees(rows.get(path), path, file) if file is not None else None
        disagrees = "RECORD and the lock disagree" if record else "the lock disagrees"
        details = [f"RECORD: {record.expected}; now {record.found}"] if record else []
        if each.elsewhere:
            details.append(f"it is as {each.elsewhere} leaves it, which is not in this selection")
        found.append(
            Finding(
                "foreign-edit",
                f"{show_path(path)} is neither as in {packet.lock.pin.name} nor as after any patch "
                f"of it: {disagrees}",
                Where(file=path),
                expected=each.patched.oid if each.patched else "no file",
                found=file.oid if file is not None else "no file",
                next=f"put the edit aside, install the package again, then {words.apply}",
                details=tuple(details),
            )
        )
    return found


def _partly(dist: Dist, tree: TreeState, packet: Packet, words: Words) -> Finding:
    found = {
        PRISTINE: "pristine: as it was installed",
        MIXED: "partly applied: its files are not from one and the same count of patches",
    }.get(tree.kind, f"patched up to {tree.patch} ({tree.count} patches)")
    return Finding(
        "partly-applied",
        f"{dist.name} {dist.version} is not patched with all of {packet.title}",
        Where(file=dist.site),
        expected=f"patched: {packet.title}, series {packet.digest[:12]}, "
        f"{len(packet.chain.patches)} patches",
        found=found,
        next=words.apply,
    )


def _other(dist: Dist, state: State, packet: Packet, words: Words) -> Finding:
    return Finding(
        "not-built-from-this",
        f"{dist.name} {dist.version} is patched, but not with {packet.title} as it is locked",
        Where(file=dist.at("patchkit.json")),
        expected=f"{packet.title}, series {packet.digest[:12]}",
        found=of(state),
        next=words.apply,
    )


def _reworded(dist: Dist, state: State, packet: Packet) -> Finding:
    return Finding(
        "series-edited",
        f"{dist.name} holds exactly the files of {packet.title}, recorded from other patch files",
        Where(file=dist.at("patchkit.json")),
        expected=f"series {packet.digest[:12]}",
        found=of(state),
        next="nothing to do; apply again to record the new ones",
        note=True,
    )
