"""What becomes of each patch on each release: pure, printable, nothing written.

Every release between is looked at in turn, because whether a change went upstream is often
visible only in a window of releases; a patch that one of them has taken is dropped from there on.
On each release the old chain, as pin and series give it, is merged onto the new base: a bare
offset is never trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.derive.base import Base
from patchkit.derive.carry import Clash, Files, carry, finding_of, hunks_of, untouched
from patchkit.derive.derive import Derived
from patchkit.engine.model import File, Overlay
from patchkit.errors import Finding
from patchkit.rebase.moves import ByOldNames, moves
from patchkit.rebase.shifts import Shifts
from patchkit.rebase.steps import Step, steps_of
from patchkit.rebase.upstream import taken
from patchkit.series.renumber import renumber
from patchkit.store.repo import Store

CLEAN, MERGED, MOVED = "clean", "merged", "moved"
CONFLICT, UPSTREAMED, DROPPED = "conflict", "upstreamed", "dropped"
OBSOLETE, PROOF_FAILS, NOT_CARRIED = "obsolete", "proof-fails", "not carried"
STANDS = "stands"
GOOD = frozenset((CLEAN, MERGED, MOVED, STANDS))


@dataclass(frozen=True)
class Cell:
    """One patch on one release.

    text: clean (only numbers change), merged (context changes too), moved (a file has another
    name there), conflict, upstreamed (all of it), dropped (the release `since` took it; by hand
    where that is ""), stands (the release's own, as it is). taken: hunks that the release has
    already, where it took some. changes: what the patch makes of the release's tree (empty unless
    carried). data: the patch's new bytes less its header change, None where it is written anew.
    proof: what its proof says, "" where none was run. hunks: those that conflict, in words.
    """

    patch: str
    pin: str
    text: str
    taken: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    clashes: tuple[Clash, ...] = ()
    findings: tuple[Finding, ...] = ()
    changes: Mapping[str, File | None] = field(default_factory=dict)
    data: bytes | None = None
    proof: str = ""
    since: str = ""
    hunks: tuple[str, ...] = ()

    @property
    def carried(self) -> bool:
        """Whether the patch is on the release."""
        return self.text in GOOD

    @property
    def words(self) -> str:
        """The text state for a table."""
        if self.text == UPSTREAMED:
            return "upstreamed"
        if self.text == DROPPED:
            return f"dropped ({self.since})" if self.since else "left out"
        if self.text == CONFLICT:
            files = _counted(len({c.path for c in self.clashes}), "file")
            return f"conflict ({files}, {_counted(len(self.hunks), 'hunk')})"
        taken = f", {_counted(len(self.taken), 'hunk')} upstreamed" if self.taken else ""
        return self.text + taken


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@dataclass(frozen=True)
class Resolved:
    """A conflict that a person has settled: what the patch makes of the release's tree, and the
    blob ids ("" for no file) of those paths as they were when it was settled. of: what the patch
    did (see `effect`) when it was, "" where nobody says."""

    changes: Mapping[str, File | None]
    before: Mapping[str, str]
    of: str = ""


def effect(before: Files, changes: Mapping[str, File | None]) -> str:
    """A digest of what a patch does: its files before and after, by blob id."""
    total = hashlib.sha256()
    for path, file in sorted(changes.items()):
        ids = " ".join(f"{f.mode:o}:{f.oid}" if f else "-" for f in (before.get(path), file))
        total.update(f"{len(path)}:{path} {ids}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


@dataclass(frozen=True)
class Row:
    """One release: its pin, its base, a cell for each patch, in series order."""

    pin: str
    base: Base
    cells: tuple[Cell, ...]


def plan(
    store: Store,
    derived: Derived,
    old: Base,
    releases: Sequence[tuple[str, Base]],
    *,
    resolved: Mapping[str, Resolved] | None = None,
    left: Mapping[str, str] | None = None,
    steps: Sequence[Step] | None = None,
) -> list[Row]:
    """A row for each release, in the order given.

    derived: the whole series applied on `old`. Patches that a release has taken are dropped on
    the ones after it. resolved: settled conflicts of the last release. left: patches that are
    left out by hand, with the reason. steps: what is to stand on the last release, where that is
    not all of the series.
    """
    every = steps_of(derived, old.tree(store))
    rows: list[Row] = []
    by_hand = dict.fromkeys(left or {}, "")
    dropped: dict[str, str] = dict(by_hand)
    for number, (pin, base) in enumerate(releases, 1):
        last = number == len(releases)
        put = steps if steps is not None and last else every
        own = {step.name for step in put if step.stands}
        out = {name: pin for name, pin in dropped.items() if name not in own or name in by_hand}
        cells = _row(store, put, old, pin, base, out, (resolved or {}) if last else {})
        for cell in cells:
            if cell.text == UPSTREAMED:
                dropped.setdefault(cell.patch, pin)
        rows.append(Row(pin, base, tuple(cells)))
    return rows


def moved_files(store: Store, steps: Sequence[Step], old: Base, new: Base) -> dict[str, str]:
    """Old path -> new path of the files of the old release that have another name on the new."""
    was, there = old.tree(store), new.tree(store)
    touched = sorted({path for step in steps if not step.stands for path in step.changes})
    for tree in (was, there):
        tree.prefetch(touched)
    return moves(was, there, touched)


def _row(
    store: Store,
    steps: Sequence[Step],
    old: Base,
    pin: str,
    base: Base,
    dropped: Mapping[str, str],
    settled: Mapping[str, Resolved],
) -> list[Cell]:
    where = moved_files(store, steps, old, base)
    now = Overlay(base.tree(store))
    shifts = Shifts()
    cells: list[Cell] = []
    unsettled: dict[str, str] = {}  # path -> the last patch in conflict that changes it
    for step in steps:
        shifted = None
        if step.name in dropped:
            cells.append(Cell(step.name, pin, DROPPED, since=dropped[step.name]))
        else:
            cell = _settled(step, pin, now, settled.get(step.name))
            if cell is None and step.stands:
                cell = _as_it_is(step, pin, now)
            elif cell is None and not step.changes.keys() & (where.keys() | unsettled.keys()):
                cell = shifted = _only_moved(step, pin, shifts, now)
            if cell is None:
                cell = _cell(step, now, {} if step.stands else where, pin, unsettled)
            cells.append(cell)
            if cell.carried:
                now.changes.update(cell.changes)
            elif cell.text == CONFLICT:
                unsettled.update(dict.fromkeys(step.changes, step.name))
        if shifted is None:
            shifts.forget(step.changes)
    return cells


def _settled(step: Step, pin: str, now: Overlay, settled: Resolved | None) -> Cell | None:
    """The cell of a settled conflict, where it was settled on these very files, of this patch."""
    if settled is None or settled.of not in ("", effect(step.before, step.changes)):
        return None
    for path, oid in settled.before.items():
        file = now.get(path)
        if (file.oid if file is not None else "") != oid:
            return None
    return Cell(step.name, pin, MERGED, changes=settled.changes)


def _as_it_is(step: Step, pin: str, now: Overlay) -> Cell | None:
    """The cell of a patch of the release's own, where nothing new came below it."""
    if not untouched(step.before, step.changes, now):
        return None
    return Cell(step.name, pin, STANDS, changes=step.changes, data=step.outcome.patch.data)


def _only_moved(step: Step, pin: str, shifts: Shifts, now: Overlay) -> Cell | None:
    """The cell of a patch of which upstream touched no line; None for any other."""
    put = shifts.carried(step.outcome, step.before, now)
    data = None if put is None else _renumbered(step, now, put.changes, put.starts)
    if put is None or data is None:
        return None
    return Cell(step.name, pin, CLEAN, changes=put.changes, data=data)


def _renumbered(
    step: Step,
    now: Overlay,
    changes: Mapping[str, File | None],
    starts: Mapping[str, Sequence[int]] | None = None,
) -> bytes | None:
    """The patch's bytes with other numbers; None where its hunks cannot make `changes` of `now`.

    starts: by path, where its hunks were put in `now`, for who knows.
    """
    patch, root = step.outcome.patch, step.outcome.root
    if not step.entry.reverse:
        return renumber(patch, now, changes, root, starts)
    # With -R it turns what is to come into what is there.
    back = {path: now.get(path) for path in changes}
    return renumber(patch, Overlay(now, changes), back, root)


def _cell(
    step: Step,
    now: Overlay,
    where: Mapping[str, str],
    pin: str,
    unsettled: Mapping[str, str],
) -> Cell:
    name, outcome, before = step.name, step.outcome, step.before
    moved = {p: where[p] for p in outcome.changes if p in where}
    carried = carry(before, outcome.changes, ByOldNames(now, where), step.renames())
    if carried.clashes:
        if _all_there(outcome.changes, now, where):
            return Cell(name, pin, UPSTREAMED, moved=moved)
        findings = tuple(
            finding_of(
                _after(_elsewhere(clash, where), unsettled.get(clash.path)),
                outcome.patch,
                outcome.root,
                f"patchkit blame {name} --onto {pin}",
                reverse=step.entry.reverse,
            )
            for clash in carried.clashes
        )
        hunks = tuple(
            f"{clash.path} hunk {number}"
            for clash in carried.clashes
            for number in hunks_of(clash, outcome.patch, outcome.root, reverse=step.entry.reverse)
        )
        clashes = carried.clashes
        return Cell(name, pin, CONFLICT, (), moved, clashes, findings, hunks=hunks)
    changes = {where.get(p, p): f for p, f in carried.changes.items()}
    if all(_same(now.get(p), f) for p, f in changes.items()):
        return Cell(name, pin, UPSTREAMED, moved=moved)
    data = None if moved else _renumbered(step, now, changes)
    gone: list[str] = []
    if data is None:  # else every hunk of it still makes what it made
        gone, _ = taken(
            {p: before.get(p) for p in outcome.changes},
            outcome.changes,
            {p: now.get(where.get(p, p)) for p in outcome.changes},
            carried.changes,
        )
    text = MOVED if moved else CLEAN if data is not None else MERGED
    return Cell(name, pin, text, tuple(gone), moved, changes=changes, data=data)


def _all_there(changes: Mapping[str, File | None], now: Overlay, where: Mapping[str, str]) -> bool:
    return all(_same(now.get(where.get(p, p)), f) for p, f in changes.items())


def _after(clash: Clash, first: str | None) -> Clash:
    """The clash, and the earlier patch in conflict that it may be due to."""
    if first is None:
        return clash
    return replace(clash, reason=f"{clash.reason} (first settle {first}, which changes it, too)")


def _elsewhere(clash: Clash, where: Mapping[str, str]) -> Clash:
    """The clash, said of the file's new place."""
    new = where.get(clash.path)
    if new is None:
        return clash
    return replace(clash, reason=f"(now {new}) {clash.reason}")


def _same(one: File | None, two: File | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.mode == two.mode and one.data == two.data
