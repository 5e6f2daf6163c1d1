"""A package whose record is lost: what it is patched with is read off its files.

Each file is as a locked selection leaves it, and taking that selection's patches out of the files
gives the lock's base ids: so nothing is guessed, and all that the record held can be had again.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patchkit.engine.apply import put
from patchkit.engine.model import File
from patchkit.engine.rule import LOOSE
from patchkit.engine.strip import Root as PatchRoot
from patchkit.engine.work import Work
from patchkit.files.root import Root
from patchkit.series.state import PATCHED, classify
from patchkit.target.dist_info import STATE, Dist, normal
from patchkit.target.installed_base import blob_oid, lookup_of, record_disagrees
from patchkit.target.installed_cut import IN, OUT, cut
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_state import IN_PLACE, SERIES, State, excerpt
from patchkit.target.installed_tree import InstalledTree
from patchkit.target.record_csv import RecordFile, changed_rows


def recognised(dist: Dist, packets: Sequence[Packet]) -> tuple[Packet, State] | None:
    """The first of `packets` that `dist` is patched with, by content, and its record again."""
    for packet in packets:
        if normal(packet.dist) == normal(dist.name):
            state = rebuilt(dist, packet)
            if state is not None:
                return packet, state
    return None


def rebuilt(dist: Dist, packet: Packet) -> State | None:
    """The record that applying `packet` to `dist` had left; None where the files are not those of
    the packet, or do not give their base back."""
    root, chain = Root(dist.site), packet.chain
    if not packet.whole_lock or not packet.paths() or not stands(dist, packet, root):
        return None
    seen = classify(packet.lock, packet.stack, lookup_of(root, packet.site_path), packet.wanted)
    if seen.kind != PATCHED:
        return None  # a file that only other patches touch is not as in the base
    modes = {p: b.mode for p in packet.paths() if (b := chain.after(p)) is not None}
    tree = InstalledTree(root, dist, packet.root, modes)
    work = Work(tree)
    for step in reversed(packet.steps):
        if not step.selected:
            continue
        at = PatchRoot(1 if step.strip is None else step.strip, step.directory or "")
        made = cut(step.patch, at, _place(packet), packet.exclude)
        # Where a hunk stands is searched: whatever is found must give the lock's base.
        outcome = put(work, made.patch, LOOSE, at, reverse=not step.reverse)
        if outcome.state != "applied":
            return None
        work.take(outcome.changes)
    base: dict[str, File | None] = {}
    now: dict[str, File | None] = {}
    for path in packet.paths():
        before, now[path] = chain.before(path), tree.get(path)
        file = work.changes[path] if path in work.changes else now[path]
        if blob_oid(before) != (file.oid if file is not None else None):
            return None
        base[path] = File(file.data, before.mode) if file is not None and before else None
    record = _before(dist, packet.site_path, base, now)
    return State(
        IN_PLACE,
        SERIES,
        packet.stack,
        excerpt(packet.lock, chain, packet.paths()),
        packet.package,
        packet.root,
        packet.exclude,
        record_sha256=record.sha256,
        record=changed_rows(record, dist.record),
        kept=base,
    )


def stands(dist: Dist, packet: Packet, root: Root) -> bool:
    """Whether the package is as locked, and RECORD says so."""
    for path in packet.paths():
        blob, inner = packet.chain.after(path), packet.site_path(path)
        file = root.get(inner)
        if (blob.oid if blob else None) != (file.oid if file else None):
            return False
        old = packet.chain.before(path)
        if blob and file and old and old.mode != blob.mode != file.mode:
            return False  # a patch that changes only the mode
        if file is not None and record_disagrees(dist, inner, file) is not None:
            return False
    return bool(packet.paths()) or not packet.chain.patches


def _place(packet: Packet) -> Callable[[str], str]:
    return lambda path: IN if packet.inside(path) else OUT


def _before(
    dist: Dist,
    site_path: Callable[[str], str],
    base: Mapping[str, File | None],
    now: Mapping[str, File | None],
) -> RecordFile:
    """RECORD as the installer wrote it: rows of files that came back stand where sorting by path
    puts them, if the others are sorted so."""
    changes: dict[str, bytes | None] = {dist.path(STATE): None}
    for path, file in base.items():
        found = now[path]
        if (file and file.data) != (found and found.data):
            changes[site_path(path)] = file.data if file is not None else None
    old = dist.record.edited(changes)
    known = dist.record.by_path
    kept = [row.path for row in old.rows if row.path in known]
    if kept != sorted(kept):
        return old
    return RecordFile(tuple(sorted(old.rows, key=lambda row: row.path)))
