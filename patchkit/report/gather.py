"""All that the site says, as values: nothing is run, fetched bases and recorded results aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patchkit.bring.graph import Graph, graph_of
from patchkit.check.counts import counts
from patchkit.derive.base import Bases
from patchkit.derive.derive import Derived, derive, trees_of
from patchkit.derive.project import Project
from patchkit.derive.proofs import ORIGIN
from patchkit.derive.selection import Selection
from patchkit.errors import Finding, Refused
from patchkit.prove.proofs import proofs_of
from patchkit.prove.prove import NO_PROOF
from patchkit.prove.recorded import proven_before
from patchkit.rebase.plan import Cell, plan
from patchkit.rebase.proving import NOT_HERE, recorded
from patchkit.rebase.reasons import gone
from patchkit.report.difference import DiffFile, differences
from patchkit.report.proofs import Recorded, Told, results_of, tests_of
from patchkit.series.header import Header
from patchkit.series.pins import Pin, Stack
from patchkit.series.quilt import Entry
from patchkit.upstreams import known


@dataclass(frozen=True)
class Release:
    """A column. tree: the base's id."""

    pin: str
    tree: str


@dataclass(frozen=True)
class PatchPage:
    """One patch of one pin. cells: as the columns stand. history: (pin, patch), oldest first, the
    patch itself among them. needs, needed: names of the same series."""

    pin: str
    entry: Entry
    header: Header
    sha256: str
    size: tuple[int, int, int]
    files: tuple[DiffFile, ...]
    cells: tuple[Cell, ...]
    proof: Told | None
    state: str
    results: tuple[Recorded, ...]
    history: tuple[tuple[str, str], ...]
    needs: tuple[str, ...]
    needed: tuple[str, ...]

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.entry.patch


@dataclass(frozen=True)
class StackRow:
    """A stack on a pin: its patches and the tree it gives ("" where the lock does not say)."""

    stack: Stack
    patches: tuple[str, ...]
    tree: str


@dataclass(frozen=True)
class PinPage:
    """One pin with its series."""

    pin: Pin
    source: str
    base: str
    releases: tuple[Release, ...]
    patches: tuple[PatchPage, ...]
    stacks: tuple[StackRow, ...]
    graph: Graph
    gone: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Patches that the series file says are not in it any more: the release, and why."""


def gather(
    bases: Bases, pin: Pin, releases: Sequence[Pin], environment: str
) -> tuple[PinPage | None, tuple[Finding, ...]]:
    """The page of a pin; None, and why, where its series does not apply.

    environment: digest of the interpreter whose recorded results count.
    """
    project, store = bases.project, bases.store
    series = project.series(pin.name)
    base = bases.get(pin)
    tree = base.tree(store)
    derived = derive(series, tree, Selection())
    if not derived.ok:
        return None, derived.findings
    trees = trees_of(store, derived, base.tree_id)
    proofs = proofs_of(project, pin.name, series)
    rows = plan(store, derived, base, [(r.name, bases.get(r)) for r in releases])
    rows = [recorded(store, row, proofs, environment) for row in rows]
    graph = graph_of(series, tree)
    facts = known(project.pins.upstream_of(pin))
    ancestors = _Ancestors(project)
    pages = []
    for number, (files, header) in enumerate(
        zip(differences(derived, tree), series.headers, strict=True)
    ):
        name = derived.names[number]
        told, state = None, NO_PROOF
        proof = proofs.get(name)
        if proof is not None:
            ran, before, after = proven_before(
                store, facts, proof, trees[number], trees[-1], environment
            )
            words, tests = tests_of(proof, before, after)
            state = ran.state
            why = tuple(w for v in (ran.red, ran.green) if v is not None for w in v.why)
            home = proof.module.parent.parent.name
            told = Told(
                proof.module.name,
                home if home != pin.name else "",
                words,
                proof.sha256,
                tests,
                tuple(m.stem for m in proof.mutants),
                state,
                why,
            )
        pages.append(
            PatchPage(
                pin.name,
                series.entries[number],
                header,
                series.patches[number].sha256,
                counts(series.patches[number]),
                files,
                tuple(row.cells[number] for row in rows),
                told,
                state,
                results_of(project.series_folder(pin.name), name),
                (*ancestors.of(pin.name, header), (pin.name, name)),
                graph.needs[name],
                tuple(n for n in graph.names if name in graph.needs[n]),
            )
        )
    columns = tuple(Release(row.pin, row.base.tree_id) for row in rows)
    stacks = tuple(_stack(project, derived, pin, s) for s in project.locked_stacks)
    page = PinPage(
        pin, base.source, base.tree_id, columns, tuple(pages), stacks, graph, gone(series)
    )
    return page, derived.findings


class _Ancestors:
    """What patches were carried from, each series read once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._headers: dict[str, dict[str, Header]] = {}

    def of(self, pin: str, header: Header) -> list[tuple[str, str]]:
        """Oldest first, as far as the project still has it."""
        out: list[tuple[str, str]] = []
        seen = {pin}
        while True:
            origin, _, patch = header.first(ORIGIN).partition("/")
            if not patch or origin in seen:
                return out
            out.insert(0, (origin, patch))
            seen.add(origin)
            older = self._read(origin).get(patch)
            if older is None:
                return out
            header = older

    def _read(self, pin: str) -> dict[str, Header]:
        if pin not in self._headers:
            found: dict[str, Header] = {}
            if pin in self._project.pins.pins and self._project.has_series(pin):
                series = self._project.series(pin, strict=False)
                names = [entry.patch for entry in series.entries]
                found = dict(zip(names, series.headers, strict=True))
            self._headers[pin] = found
        return self._headers[pin]


def _stack(project: Project, derived: Derived, pin: Pin, stack: Stack) -> StackRow:
    chosen = Selection(stack).of(derived.series)
    names = tuple(n for n, c in zip(derived.names, chosen, strict=True) if c)
    tree = ""
    try:
        chain = project.lock(pin.name).stacks.get(stack.name)
    except Refused:
        chain = None  # a project without a lock has a report, too
    if chain is not None and chain.patches == names and chain.trees:
        tree = next(iter(sorted(chain.trees.items())))[1][-1]
    return StackRow(stack, names, tree)


__all__ = ["NOT_HERE", "PatchPage", "PinPage", "Release", "StackRow", "gather"]
