"""Which patch needs which: computed by leaving each one out and applying the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import Tree
from patchkit.engine.rule import EXACT
from patchkit.series.folder import Series


@dataclass(frozen=True)
class Graph:
    """needs: patch -> the patches without which it does not apply, direct ones only. commutes:
    pairs that touch a common file and need each other in no way. guards: patch -> guard."""

    names: tuple[str, ...]
    needs: Mapping[str, tuple[str, ...]]
    commutes: tuple[tuple[str, str], ...]
    guards: Mapping[str, str] = field(default_factory=dict)

    def cut(self) -> list[tuple[str, str]]:
        """Pairs (patch, needed) where some stack could hold the patch and not what it needs."""
        return [
            (name, other)
            for name, others in self.needs.items()
            for other in others
            if self.guards.get(other) and self.guards.get(other) != self.guards.get(name)
        ]


def graph_of(series: Series, base: Tree) -> Graph:
    """The graph of a series that applies to `base` as a whole."""
    names = tuple(entry.patch for entry in series.entries)
    files = [frozenset(s.path for s in patch.sections) for patch in series.patches]
    broken: dict[str, set[str]] = {name: set() for name in names}
    for at, name in enumerate(names):
        if not any(files[at] & files[later] for later in range(at + 1, len(names))):
            continue
        for other in _without(series, base, at):
            broken[other].add(name)
    needs = {name: _direct(broken[name], broken) for name in names}
    commutes = tuple(
        (names[i], names[j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if files[i] & files[j] and names[i] not in broken[names[j]]
    )
    guards = {e.patch: e.guard for e in series.entries if e.guard is not None}
    return Graph(names, needs, commutes, guards)


def _without(series: Series, base: Tree, left: int) -> list[str]:
    steps = [
        Step(patch, entry.strip, entry.reverse, number != left)
        for number, (patch, entry) in enumerate(zip(series.patches, series.entries, strict=True))
    ]
    chain = apply_chain(base, steps, EXACT)
    return [o.patch.name for o in chain.outcomes if o.state == "refused"]


def _direct(needed: set[str], broken: Mapping[str, set[str]]) -> tuple[str, ...]:
    """`needed` less what those need already."""
    through = {far for near in needed for far in broken[near]}
    return tuple(sorted(needed - through))


def text(graph: Graph) -> list[str]:
    """Lines for people: a patch, and below it what it needs."""
    lines = []
    for name in graph.names:
        guard = f"  #+{graph.guards[name]}" if name in graph.guards else ""
        lines.append(f"{name}{guard}")
        lines += [f"  needs {other}" for other in graph.needs[name]]
        lines += [f"  commutes with {a}" for a, b in graph.commutes if b == name]
    return lines


def mermaid(graph: Graph) -> list[str]:
    """The graph as a Mermaid flow chart; an arrow goes from a patch to what it needs."""
    ids = {name: f"p{number}" for number, name in enumerate(graph.names)}
    lines = ["flowchart BT"]
    lines += [f'  {ids[name]}["{_label(name)}"]' for name in graph.names]
    lines += [f"  {ids[n]} --> {ids[o]}" for n in graph.names for o in graph.needs[n]]
    lines += [f"  {ids[a]} -.- {ids[b]}" for a, b in graph.commutes]
    return lines


def _label(name: str) -> str:
    text = name.removesuffix(".patch").replace("#", "#35;")
    return text.replace('"', "#quot;").replace("<", "#lt;")
