"""What an installed package is now, without applying anything: fit for an entry point.

Touched files are hashed and compared with the lock and with RECORD; all others are compared with
RECORD by size only, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.files.root import Root
from patchkit.series import state as lockstate
from patchkit.series.state import TreeState, classify
from patchkit.target.dist_info import Dist
from patchkit.target.installed_base import (
    SHOWN,
    edited_since,
    gone,
    identity,
    journal_finding,
    linked,
    links_in,
    lookup_of,
    others_edited,
    read_state,
    record_disagrees,
)
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_parts import Parts, in_part, left_out, lost_record, otherwise, shown
from patchkit.target.installed_state import State
from patchkit.target.installed_words import Words, of

PRISTINE = lockstate.PRISTINE
PATCHED = lockstate.PATCHED
UPTO = lockstate.UPTO
MIXED = lockstate.MIXED
FOREIGN = lockstate.FOREIGN
OTHER = "other"
"""Patched as its own record says, and not with what is asked about."""
PARTIAL = "partial"
"""Patched, less what --exclude left out."""
LOST = "lost"
"""Patched, and nothing says with what."""


@dataclass(frozen=True)
class Status:
    """One package.

    kind: PRISTINE, PATCHED, PARTIAL, UPTO, MIXED (partly applied), FOREIGN, OTHER or LOST.
    state: what is recorded. count, patch: of UPTO, how many patches and the last. paths: each
    touched site path with its kind and the last patch whose effect is found. against: what it was
    compared with, "" for its own record. left_out: of what is recorded, the paths that --exclude
    left out, each with its patches.
    """

    dist: Dist
    kind: str
    state: State | None
    count: int = 0
    patch: str = ""
    paths: tuple[tuple[str, str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    against: str = ""
    left_out: Parts = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)

    @property
    def words(self) -> str:
        """The state for people: which stack, which series."""
        if self.kind in (PATCHED, PARTIAL, OTHER) and self.state is not None:
            how = "" if self.state.made_by == "in-place" else ", as built"
            if not self.left_out:
                return f"patched ({of(self.state)}{how})"
            return f"partly patched ({of(self.state)}{how}; without {shown(self.left_out)})"
        if self.kind == UPTO:
            return f"patched up to {self.patch} ({self.count} patches)"
        words = {MIXED: "partly applied", FOREIGN: "edited by hand", LOST: "patched, record lost"}
        return words.get(self.kind, self.kind)


def status(dist: Dist, packet: Packet | None = None, words: Words = Words()) -> Status:  # noqa: B008
    """What `dist` is; with `packet` compared with that, else with its own record."""
    root = Root(dist.site)
    state = read_state(dist)
    stopped = journal_finding(dist.site, words)
    found = [stopped] if stopped is not None else []
    if packet is not None:
        return _compared(dist, packet, root, state, found, words)
    if state is None:
        lost = [lost_record(dist)] if dist.record_lost else []
        others = others_edited(dist, root, (), read=False)
        return Status(dist, LOST if lost else PRISTINE, None, findings=(*found, *lost, *others))
    edited = edited_since(dist, state, root, words)
    touched = [state.site_path(path) for path in state.chain.paths]
    wrong = {f.where.file for f in edited}
    paths = tuple((p, FOREIGN if p in wrong else PATCHED, "") for p in sorted(touched))
    parts = left_out(dist, state)
    notes = others_edited(dist, root, touched, read=False)
    if parts:
        notes.insert(0, in_part(dist, state, parts))
    kind = FOREIGN if edited else PARTIAL if parts else PATCHED
    every = (*found, *edited, *notes)
    return Status(dist, kind, state, paths=paths, findings=every, left_out=parts)


def _compared(
    dist: Dist,
    packet: Packet,
    root: Root,
    state: State | None,
    found: list[Finding],
    words: Words,
) -> Status:
    against = f"{packet.title}, series {packet.digest[:12]}"
    mismatch = identity(dist, packet.lock.pin, packet.version, packet.package)
    if mismatch:
        # The files of another release are not edits of this one: its own record says what it is.
        own = status(dist, None, words)
        return replace(own, findings=(*mismatch, *own.findings), against=against)
    tree = classify(packet.lock, packet.stack, lookup_of(root, packet.site_path), packet.wanted)
    paths = tuple((packet.site_path(p.path), p.kind, p.patch) for p in tree.paths)
    kind = tree.kind
    touched = [path for path, _, _ in paths]
    if state is not None:
        touched += [state.site_path(path) for path in state.chain.paths]
    edited = []
    if state is not None and (kind != PATCHED or state.exclude != packet.exclude):
        edited = edited_since(dist, state, root, words, words.apply)
    parts = left_out(dist, state) if state is not None else {}
    part = otherwise(dist, state, packet, words.apply) if state and not edited else None
    back = words.way_back(dist, state, words.apply) if state is not None else ""
    links = links_in(dist, dict.fromkeys(touched))
    if links:
        kind = FOREIGN
        found.append(linked(dist, links))
        found += _foreign(dist, tree, packet, root, back, links)
    elif part is not None:
        kind = PARTIAL if parts else OTHER
        found.append(part)
    elif kind == PATCHED or (kind == PRISTINE and not packet.chain.patches):
        found += _record(dist, root, touched)
        if state is None:
            found += _lost(dist, packet, words)
        elif parts:
            kind = PARTIAL
            found.append(in_part(dist, state, parts))
        if state is not None and state.digest != packet.digest and packet.chain.patches:
            found.append(_reworded(dist, state, packet))
    elif state is not None and kind != UPTO and not edited:
        kind = OTHER
        found.append(_other(dist, state, packet, words, tree))
    elif kind == FOREIGN:
        found += [lost_record(dist)] if dist.record_lost else []
        found += _foreign(dist, tree, packet, root, back)
    else:
        clean = not edited if state is not None else kind == PRISTINE and not dist.record_lost
        found.append(_partly(dist, tree, packet, words, clean))
    found += others_edited(dist, root, touched, read=False)
    count = max(tree.count, 0)
    return Status(dist, kind, state, count, tree.patch, paths, tuple(found), against, parts)


def _lost(dist: Dist, packet: Packet, words: Words) -> list[Finding]:
    if not dist.record_lost:
        return []
    return [lost_record(dist, packet.title, f"{words.apply}, which writes it again")]


def _record(dist: Dist, root: Root, touched: Sequence[str]) -> list[Finding]:
    found = []
    for path in sorted(set(touched)):
        file = root.get(path)
        wrong = record_disagrees(dist, path, file) if file is not None else None
        found += [wrong] if wrong is not None else []
    return found


def _foreign(
    dist: Dist,
    tree: TreeState,
    packet: Packet,
    root: Root,
    back: str,
    links: Sequence[str] = (),
) -> list[Finding]:
    """back: the way back, where the record has one."""
    found = []
    for each in tree.paths:
        path = packet.site_path(each.path)
        if each.kind != FOREIGN or path in links:
            continue
        file = root.get(path)
        if file is None and path in dist.record.by_path:
            missing = gone(dist, path, each.patched.oid if each.patched else "no file")
            found.append(replace(missing, next=back or missing.next))
            continue
        record = record_disagrees(dist, path, file) if file is not None else None
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
                next=back or f"keep a copy of the edit, then: {dist.reinstall}",
                details=tuple(details),
            )
        )
    return found


def _partly(dist: Dist, tree: TreeState, packet: Packet, words: Words, clean: bool) -> Finding:
    """clean: the package is as installed or as recorded, so that applying is the way on."""
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
        next=words.apply if clean else f"{dist.reinstall}, then {words.apply}",
    )


def _other(dist: Dist, state: State, packet: Packet, words: Words, tree: TreeState) -> Finding:
    differ = [
        show_path(packet.site_path(p.path))
        for p in tree.paths
        if len(packet.chain.patches) not in p.counts
    ]
    more = f", and {len(differ) - SHOWN} more" if len(differ) > SHOWN else ""
    return Finding(
        "not-built-from-this",
        f"{dist.name} {dist.version} is patched, but not with {packet.title} as it is locked",
        Where(file=dist.at("patchkit.json")),
        expected=f"{packet.title}, series {packet.digest[:12]}",
        found=of(state),
        next=words.apply,
        details=(f"these files differ: {', '.join(differ[:SHOWN])}{more}",),
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
