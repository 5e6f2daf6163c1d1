"""What becomes of each patch on each release: pure, printable, nothing written.

Every release between is looked at in turn, because whether a change went upstream is often
visible only in a window of releases; a patch that one of them has taken is dropped from there on.
On each release the old chain, as pin and series give it, is merged onto the new base: a bare
offset is never trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.derive.base import Base
from patchkit.derive.carry import Clash, carry, finding_of, renames_of
from patchkit.derive.derive import Derived
from patchkit.engine.model import File, Overlay
from patchkit.engine.outcome import Outcome
from patchkit.errors import Finding
from patchkit.rebase.moves import moves
from patchkit.rebase.shifts import Shifts
from patchkit.rebase.upstream import taken
from patchkit.series.renumber import renumber
from patchkit.store.repo import Store

CLEAN, MERGED, MOVED = "clean", "merged", "moved"
CONFLICT, UPSTREAMED, DROPPED = "conflict", "upstreamed", "dropped"
OBSOLETE, PROOF_FAILS, NOT_CARRIED = "obsolete", "proof-fails", "not carried"
GOOD = frozenset((CLEAN, MERGED, MOVED))


@dataclass(frozen=True)
class Cell:
    """One patch on one release.

    text: clean (only numbers change), merged (context changes too), moved (a file has another
    name there), conflict, upstreamed (all of it), dropped (the release `since` took it; by hand
    where that is ""). taken: hunks that the release has already, where it took some. changes: what
    the patch makes of the release's tree (empty unless carried). data: the patch's new bytes less
    its header change, None where it is written anew. proof: what its proof says, "" where none was
    run.
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
            return f"conflict ({len({c.path for c in self.clashes})} file(s))"
        return f"{self.text}, {len(self.taken)} hunk(s) upstreamed" if self.taken else self.text


@dataclass(frozen=True)
class Resolved:
    """A conflict that a person has settled: what the patch makes of the release's tree, and the
    blob ids ("" for no file) of those paths as they were when it was settled."""

    changes: Mapping[str, File | None]
    before: Mapping[str, str]


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
) -> list[Row]:
    """A row for each release, in the order given.

    derived: the whole series applied on `old`. Patches that a release has taken are dropped on
    the ones after it. resolved: settled conflicts of the last release. left: patches that are
    left out by hand, with the reason.
    """
    rows: list[Row] = []
    dropped: dict[str, str] = dict.fromkeys(left or {}, "")
    for number, (pin, base) in enumerate(releases, 1):
        settled = (resolved or {}) if number == len(releases) else {}
        cells = _row(store, derived, old, pin, base, dropped, settled)
        for cell in cells:
            if cell.text == UPSTREAMED:
                dropped.setdefault(cell.patch, pin)
        rows.append(Row(pin, base, tuple(cells)))
    return rows


def _row(
    store: Store,
    derived: Derived,
    old: Base,
    pin: str,
    base: Base,
    dropped: Mapping[str, str],
    settled: Mapping[str, Resolved],
) -> list[Cell]:
    was, bare, touched = old.tree(store), base.tree(store), derived.touched()
    for tree in (was, bare):
        tree.prefetch(touched)
    where = moves(was, bare, touched)
    before, now = Overlay(was), Overlay(bare)
    shifts = Shifts()
    cells: list[Cell] = []
    unsettled: dict[str, str] = {}  # path -> the last patch in conflict that changes it
    for name, outcome in zip(derived.names, derived.outcomes, strict=True):
        shifted = None
        if name in dropped:
            cells.append(Cell(name, pin, DROPPED, since=dropped[name]))
        else:
            cell = _settled(name, pin, now, settled.get(name))
            if cell is None and not outcome.changes.keys() & (where.keys() | unsettled.keys()):
                cell = shifted = _only_moved(name, pin, outcome, shifts, before, now)
            if cell is None:
                cell = _cell(derived, name, before, now, where, pin, unsettled)
            cells.append(cell)
            if cell.carried:
                now.changes.update(cell.changes)
            elif cell.text == CONFLICT:
                unsettled.update(dict.fromkeys(outcome.changes, name))
        if shifted is None:
            shifts.forget(outcome.changes)
        before.changes.update(outcome.changes)
    return cells


def _settled(name: str, pin: str, now: Overlay, settled: Resolved | None) -> Cell | None:
    """The cell of a settled conflict, where it was settled on these very files."""
    if settled is None:
        return None
    for path, oid in settled.before.items():
        file = now.get(path)
        if (file.oid if file is not None else "") != oid:
            return None
    return Cell(name, pin, MERGED, changes=settled.changes)


def _only_moved(
    name: str,
    pin: str,
    outcome: Outcome,
    shifts: Shifts,
    before: Overlay,
    now: Overlay,
) -> Cell | None:
    """The cell of a patch of which upstream touched no line; None for any other."""
    changes = shifts.carried(outcome, before, now)
    data = None if changes is None else renumber(outcome.patch, now, changes, outcome.root)
    if changes is None or data is None:
        return None
    return Cell(name, pin, CLEAN, changes=changes, data=data)


def _cell(
    derived: Derived,
    name: str,
    before: Overlay,
    now: Overlay,
    where: Mapping[str, str],
    pin: str,
    unsettled: Mapping[str, str],
) -> Cell:
    outcome = derived.outcomes[derived.names.index(name)]
    renames = renames_of(outcome.patch, outcome.root)
    moved = {p: where[p] for p in outcome.changes if p in where}
    carried = carry(before, outcome.changes, _Moved(now, where), renames)
    if carried.clashes:
        if _all_there(outcome.changes, now, where):
            return Cell(name, pin, UPSTREAMED, moved=moved)
        next_command = f"patchkit rebase --onto {pin}, then resolve {name}"
        findings = tuple(
            finding_of(
                _after(_elsewhere(clash, where), unsettled.get(clash.path)),
                outcome.patch,
                outcome.root,
                next_command,
            )
            for clash in carried.clashes
        )
        return Cell(name, pin, CONFLICT, moved=moved, clashes=carried.clashes, findings=findings)
    changes = {where.get(p, p): f for p, f in carried.changes.items()}
    if all(_same(now.get(p), f) for p, f in changes.items()):
        return Cell(name, pin, UPSTREAMED, moved=moved)
    gone, _ = taken(
        {p: before.get(p) for p in outcome.changes},
        outcome.changes,
        {p: now.get(where.get(p, p)) for p in outcome.changes},
        carried.changes,
    )
    data = None if moved or gone else renumber(outcome.patch, now, changes, outcome.root)
    text = MOVED if moved else CLEAN if data is not None else MERGED
    return Cell(name, pin, text, tuple(gone), moved, changes=changes, data=data)


class _Moved:
    """A tree asked by the old names of files that have moved."""

    def __init__(self, tree: Overlay, where: Mapping[str, str]) -> None:
        self._tree = tree
        self._where = where

    def get(self, path: str) -> File | None:
        return self._tree.get(self._where.get(path, path))


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
