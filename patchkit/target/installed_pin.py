"""A pin's locked series on an installed package: the plan, made in memory.

The base is the installed package's own files: as RECORD and the lock say where nothing was
patched yet, else what taking the recorded patches out of them gives. So another stack, or a newer
series, goes through the base in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchkit.engine.apply import Outcome
from patchkit.engine.chain import Chain as Done
from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import File, Overlay, Tree
from patchkit.engine.rule import EXACT
from patchkit.engine.strip import Root as PatchRoot
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.target.dist_info import Dist
from patchkit.target.installed_base import (
    edited_since,
    identity,
    lock_disagrees,
    others_edited,
    read_state,
)
from patchkit.target.installed_cut import IN, NATIVE, OUT, Cut, cut
from patchkit.target.installed_lost import rebuilt, stands
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_parts import lost_record
from patchkit.target.installed_plan import (
    ALREADY,
    APPLIED,
    REFUSED,
    Plan,
    patchable,
    read_base,
    with_kept,
)
from patchkit.target.installed_replay import left_at
from patchkit.target.installed_state import IN_PLACE, LOOSE, SERIES, Recorded, State, excerpt
from patchkit.target.installed_tree import InstalledTree
from patchkit.target.installed_words import Words, of
from patchkit.target.installed_write import Part

Files = Mapping[str, File | None]


def plan_pin(dist: Dist, packet: Packet, words: Words) -> Plan:
    """Work out what applying `packet` to `dist` writes. Nothing is written.

    Raises Refused where the package cannot be patched in place at all.
    """
    wrong = identity(dist, packet.lock.pin, packet.version, packet.package)
    if wrong:
        return Plan(dist, REFUSED, findings=tuple(wrong))
    root = Root(dist.site)
    state = read_state(dist)
    if state is None and stands(dist, packet, root):
        return _unrecorded(dist, packet, root, words)
    if state is not None and state.kind == LOOSE:
        raise Refused(_other_first(dist, state, words, "loose patches"))
    if state is not None:
        edited = edited_since(dist, state, root, words, words.apply)
        if edited:
            return Plan(dist, REFUSED, findings=tuple(edited))
        if packet.is_state(state):
            return _already(dist, packet, root, state)
        if state.root != packet.root:
            raise Refused(_other_first(dist, state, words, "patches of another tree"))
    return _plan(dist, packet, root, patchable(dist, words))


def _plan(dist: Dist, packet: Packet, root: Root, state: State | None) -> Plan:
    paths = packet.paths()
    modes = {p: b.mode for p in paths if (b := packet.chain.before(p)) is not None}
    patched = state.chain if state is not None else None
    now = {p: b.mode for p in patched.paths if (b := patched.after(p))} if patched else {}
    tree = InstalledTree(root, dist, packet.root, {**modes, **now})
    base, findings = read_base(root, tree, state, paths)
    findings += _against_lock(dist, packet, base, findings)
    if findings:
        return Plan(dist, REFUSED, findings=tuple(findings))
    clean = Overlay(InstalledTree(root, dist, packet.root, modes), base)
    steps, cuts = _steps(packet, clean)
    left_out = tuple(sorted({path for made in cuts.values() for path in made.left_out}))
    wrong = tuple(f for made in cuts.values() for f in made.findings)
    if wrong:
        return Plan(dist, REFUSED, left_out=left_out, findings=wrong)
    done = apply_chain(clean, steps, EXACT)
    outcomes = tuple(o for o in done.outcomes if o.state != "left-out")
    wrong = done.findings if not done.ok else tuple(_not_as_locked(packet, clean, done.changes))
    if wrong:
        return Plan(dist, REFUSED, None, outcomes, left_out, wrong)
    # Paths that only the old state touches go back to the base.
    final = {**base, **done.changes}
    patches = _recorded(steps, cuts, done)
    kept = with_kept(clean, final, {path: base[path] for path in paths}, patches)
    after = State(
        IN_PLACE,
        SERIES,
        packet.stack,
        excerpt(packet.lock, packet.chain, paths),
        packet.package,
        packet.root,
        packet.exclude,
        left_out,
        patches,
        kept=kept,
    )
    files = {packet.site_path(path): file for path, file in final.items()}
    part = Part(dist, state, after, files, {packet.site_path(p): f for p, f in base.items()})
    changed = tuple(sorted(p for p, f in files.items() if _data(root.get(p)) != _data(f)))
    notes = tuple(others_edited(dist, root, files, read=True))
    return Plan(dist, APPLIED, part, outcomes, left_out, notes, changed, after)


def _against_lock(
    dist: Dist, packet: Packet, base: Files, known: Sequence[Finding]
) -> list[Finding]:
    """foreign-edit for every base file that is not the lock's, but those that `known` names."""
    said = {finding.where.file for finding in known}
    found = []
    for path in packet.paths():
        blob, file, inner = packet.chain.before(path), base.get(path), packet.site_path(path)
        same = (blob.oid if blob else None) == (file.oid if file else None)
        if not same and inner not in said:
            found.append(lock_disagrees(dist, inner, blob, file, packet.lock.pin.name))
    return found


def _steps(packet: Packet, base: Tree) -> tuple[list[Step], dict[str, Cut]]:
    """The steps with what the package lacks cut off, and the cuts by patch name."""

    def place(path: str) -> str:
        if not packet.inside(path):
            return NATIVE if packet.native(path) else OUT
        # A package may ship sources (for compiling at run time): those it has are its data.
        return NATIVE if packet.native(path) and base.get(path) is None else IN

    steps: list[Step] = []
    cuts: dict[str, Cut] = {}
    for step in packet.steps:
        if step.selected:
            root = PatchRoot(1 if step.strip is None else step.strip, step.directory or "")
            made = cuts[step.patch.name] = cut(step.patch, root, place, packet.exclude)
            step = replace(step, patch=made.patch)
        steps.append(step)
    return steps, cuts


def _recorded(steps: Sequence[Step], cuts: Mapping[str, Cut], done: Done) -> tuple[Recorded, ...]:
    return tuple(
        Recorded(
            step.patch.name,
            step.patch.sha256,
            step.patch.data,
            1 if step.strip is None else step.strip,
            step.directory or "",
            step.reverse,
            cuts[step.patch.name].kept,
            left_at(outcome.edits),
        )
        for step, outcome in zip(steps, done.outcomes)  # noqa: B905  (3.10; one a step)
        if step.selected
    )


def _not_as_locked(packet: Packet, base: Tree, changes: Files) -> list[Finding]:
    """lock-stale findings for every path that did not become what the lock promises."""
    found = []
    for path in sorted({*packet.paths(), *changes}):
        file = changes[path] if path in changes else base.get(path)
        locked = packet.chain.after(path) if path in packet.chain.paths else None
        if (locked.oid if locked else None) != (file.oid if file else None):
            found.append(
                Finding(
                    "lock-stale",
                    f"{path} does not become what the lock says",
                    Where(file=path),
                    expected=locked.oid if locked else "no file, or no change of it",
                    found=file.oid if file else "no file",
                    next=f"patchkit lock --pin {packet.lock.pin.name}",
                )
            )
    return found


def _unrecorded(dist: Dist, packet: Packet, root: Root, words: Words) -> Plan:
    """A package as locked, without a record: built so, or its record is lost and written again."""
    if not dist.record_lost:
        return _already(dist, packet, root, None)
    state = rebuilt(dist, packet)
    if state is None:
        plan = _already(dist, packet, root, None)
        note = lost_record(dist, packet.title)
    else:
        plan = _plan(dist, packet, root, state)
        note = lost_record(dist, packet.title, f"nothing: it is written again for {words.revert}")
    return replace(plan, findings=(note, *plan.findings))


def _already(dist: Dist, packet: Packet, root: Root, state: State | None) -> Plan:
    outcomes = tuple(Outcome(s.patch, "already-applied") for s in packet.steps if s.selected)
    touched = [packet.site_path(path) for path in packet.paths()]
    notes = tuple(others_edited(dist, root, touched, read=False))
    left_out = state.left_out if state is not None else ()
    return Plan(dist, ALREADY, None, outcomes, left_out, notes, (), state)


def _other_first(dist: Dist, state: State, words: Words, what: str) -> Finding:
    return Finding(
        "unsupported",
        f"{what} were applied to {dist.name}, and this series is not put on them",
        Where(file=dist.at("patchkit.json")),
        expected="the package as it was installed, or patched with this series",
        found=of(state),
        next=f"{words.revert}, then {words.apply}",
    )


def _data(file: File | None) -> bytes | None:
    return file.data if file is not None else None
