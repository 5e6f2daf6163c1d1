"""What each hunk of a patch needs of the upstream's lines, and what a tree has made of them.

A hunk's lines are followed from the pin's own base: what earlier patches of the series put among
them is left out, so that only the upstream is judged. The question is never where the lines stand
somewhere, but what became of them: a look-alike cannot answer it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.derive.derive import Derived
from patchkit.engine.content import Text
from patchkit.engine.diff import Range, diff_lines
from patchkit.engine.history import History, runs
from patchkit.engine.model import File, Hunk, Overlay, Tree
from patchkit.engine.outcome import Edit
from patchkit.engine.text import split_lines
from patchkit.rebase.spans import Span, across, meets, touches

HOLDS, MERGES, CONFLICT = "holds", "merges", "conflict"
TAKEN, GONE, STANDS = "upstreamed", "gone", "exists"
RANK = {HOLDS: 0, MERGES: 1, CONFLICT: 2, TAKEN: 2, GONE: 2, STANDS: 2}
"""How much upstream has done: a bisection asks from which commit on it was at least that much."""


@dataclass(frozen=True)
class Need:
    """One hunk, and the lines of the pin's base that it needs.

    path: the file on the base. hunk: 1-based number in the file, 0 for a file without hunks.
    lines: the range of the base's lines, 0-based, end excluded. cores: those of them that it
    replaces, each with the lines that come instead. result: what it leaves, context too. absent:
    it makes the file, so none may be there. on: earlier patches whose lines are among its own.
    """

    path: str
    hunk: int
    lines: Span = (0, 0)
    cores: tuple[tuple[Span, tuple[bytes, ...]], ...] = ()
    result: tuple[bytes, ...] = ()
    absent: bool = False
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What a tree has made of a need.

    state: holds (every line stands, at whatever number), merges (lines beside its change are
    others), conflict (what it changes is changed), upstreamed, gone (no such file), exists (the
    file that it makes is there). lines: where its lines stand now. changes: what was done to them,
    as ranges of base and tree.
    """

    state: str
    lines: Span = (0, 0)
    changes: tuple[Range, ...] = ()

    @property
    def rank(self) -> int:
        """See `RANK`."""
        return RANK[self.state]


def needs_of(derived: Derived, base: Tree, patch: str) -> list[Need]:
    """What every hunk of `patch` needs, in the order of the patch.

    derived: the whole series applied on `base`.
    """
    before = Overlay(base)
    history = History()
    names: dict[str, str] = {}  # path now -> path on the base, where an earlier patch renamed it
    for number, (name, outcome) in enumerate(zip(derived.names, derived.outcomes, strict=True)):
        if name == patch:
            teller = _Teller(base, before, history, derived.names)
            return [n for edit in outcome.edits for n in teller.needs(edit, names)]
        history.record(number, outcome.edits)
        before.changes.update(outcome.changes)
        for edit in outcome.edits:
            if edit.old and edit.new and edit.old != edit.new:
                names[edit.new] = names.get(edit.old, edit.old)
    raise KeyError(patch)


@dataclass(frozen=True)
class _Teller:
    base: Tree
    before: Tree
    history: History
    names: Sequence[str]

    def needs(self, edit: Edit, renamed: dict[str, str]) -> list[Need]:
        path = edit.old or edit.new or ""
        origin = renamed.get(path, path)
        there, was = self.before.get(path), self.base.get(origin)
        if edit.old is None or there is None:
            new = tuple(line for hunk in edit.hunks for line in hunk.new)
            return [Need(origin, 1 if edit.hunks else 0, result=new, absent=True)]
        if was is None:  # an earlier patch made it
            by = tuple(self.names[n] for n in self.history.touched(path)[:1])
            rows = enumerate(edit.hunks, 1) if edit.hunks else [(0, None)]
            return [Need(origin, number, absent=True, on=by) for number, _ in rows]
        old, now = split_lines(was.data), split_lines(there.data)
        back = [(j1, j2, i1, i2) for i1, i2, j1, j2 in diff_lines(old, now, by_indent=False)]
        if not edit.hunks:
            whole = (0, len(old))
            cores = ((whole, ()),) if edit.new is None else ()
            return [Need(origin, 0, whole, cores)]
        return [
            self._need(origin, path, number, hunk, start, back)
            for number, (hunk, start) in enumerate(zip(edit.hunks, edit.starts, strict=True), 1)
        ]

    def _need(
        self, origin: str, path: str, number: int, hunk: Hunk, start: int, back: Sequence[Range]
    ) -> Need:
        span = (start, start + len(hunk.old))
        cores = []
        for run in runs([hunk], [start]):
            first = run.new - start
            added = hunk.new[first : first + run.added]
            cores.append((across(back, (run.old, run.old + run.removed)), added))
        by = self.history.changed(path, *span)
        on = (self.names[by],) if by is not None else ()
        return Need(origin, number, across(back, span), tuple(cores), hunk.new, on=on)


def judge(need: Need, was: File | None, file: File | None) -> Seen:
    """What `file` (the file of a tree, under whatever name it has there) has made of `need`.

    was: the file on the pin's base.
    """
    if need.absent:
        return _for_new(need, file)
    if file is None or was is None:
        return Seen(GONE)
    if file.oid == was.oid:
        return Seen(HOLDS, need.lines)
    old, text = split_lines(was.data), Text.of(file.data)
    changes = diff_lines(old, text.lines, by_indent=False)
    place = across(changes, need.lines)
    met = tuple(c for c in changes if meets(c, need.lines) or _at_core(c, need))
    if not met:
        return Seen(HOLDS, place)
    if _taken(need, met, text):
        return Seen(TAKEN, place, met)
    return Seen(CONFLICT if any(_at_core(c, need) for c in met) else MERGES, place, met)


def _for_new(need: Need, file: File | None) -> Seen:
    if file is None:
        return Seen(HOLDS)
    lines = split_lines(file.data)
    same = bool(need.result) and lines == list(need.result)
    return Seen(TAKEN if same else STANDS, (0, len(lines)))


def _at_core(change: Range, need: Need) -> bool:
    """Whether a merge would set the change against the hunk: they touch or overlap."""
    return any(touches(change, core) for core, _ in need.cores)


def _taken(need: Need, changes: Sequence[Range], text: Text) -> bool:
    """Whether the tree has the hunk's change: the same at the same lines, or all its result."""
    if not need.cores:
        return False
    made = [(c[:2], tuple(text.lines[c[2] : c[3]])) for c in changes]
    if all(core in made for core in need.cores):
        return True
    met = any(touches(c, core) for c in changes for core, _ in need.cores)
    return met and bool(need.result) and len(text.places(need.result)) == 1
