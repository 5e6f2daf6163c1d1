"""The graph of a series as a drawing: what a patch needs stands left of it.

Ranks are the longest way to a patch that needs nothing; within a rank the series' order holds.
Patches that need nothing and that nothing needs are not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from patchkit.bring.graph import Graph

_CHAR, _PAD, _HIGH, _ACROSS, _DOWN, _EDGE = 7.2, 12, 30, 56, 14, 6


@dataclass(frozen=True)
class Box:
    """A patch: its name, its label and where it is drawn (user units of the view box)."""

    name: str
    label: str
    guard: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """From `name` back to what it needs; path: SVG path data. cut: a guard cuts it."""

    name: str
    needs: str
    path: str
    cut: bool


@dataclass(frozen=True)
class Drawing:
    """Boxes and edges in a view box of that size. alone: names that are not drawn."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float
    alone: tuple[str, ...]


def draw(graph: Graph) -> Drawing:
    """Where everything stands. The same graph, the same numbers."""
    linked = {n for n, others in graph.needs.items() if others}
    linked |= {o for others in graph.needs.values() for o in others}
    ranks = _ranks(graph, linked)
    columns, ways = _columns(graph, ranks)
    spots: dict[str, Box] = {}
    x = float(_EDGE)
    tallest = max((len(c) for c in columns), default=0)
    for rank, column in enumerate(columns):
        names = [n for n in column if n in linked]
        width = max(len(_label(n)) for n in names) * _CHAR + 2 * _PAD
        order = sorted(column, key=lambda n: (_wish(n, ways, spots), column.index(n)))
        if rank == 0:
            order = _by_needed(column, graph, columns)
        top = _EDGE + (tallest - len(column)) * (_HIGH + _DOWN) / 2
        for row, name in enumerate(order):
            y = top + row * (_HIGH + _DOWN)
            guard = graph.guards.get(name, "")
            spots[name] = Box(name, _label(name), guard, x, y, round(width, 1), _HIGH)
        x = round(x + width + _ACROSS, 1)
    cut = set(graph.cut())
    edges = tuple(
        Edge(name, other, _curves([spots[n] for n in _way(name, other, ranks)]), pair in cut)
        for name in graph.names
        for other in graph.needs[name]
        for pair in [(name, other)]
    )
    high = 2 * _EDGE + tallest * (_HIGH + _DOWN) - _DOWN if spots else 0
    wide = round(x - _ACROSS + _EDGE, 1) if spots else 0
    ordered = tuple(spots[n] for n in graph.names if n in linked)
    alone = tuple(n for n in graph.names if n not in linked)
    return Drawing(ordered, edges, wide, float(high), alone)


def _columns(graph: Graph, ranks: dict[str, int]) -> tuple[list[list[str]], dict[str, list[str]]]:
    """Names by rank, with a place for every line that passes by; and what stands left of each."""
    columns: list[list[str]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    left: dict[str, list[str]] = {}
    for name in graph.names:
        if name in ranks:
            columns[ranks[name]].append(name)
    for name in graph.names:
        for other in graph.needs[name]:
            way = _way(name, other, ranks)
            for near, far in pairwise(way):
                left.setdefault(far, []).append(near)
                if far != name:
                    columns[ranks[other] + way.index(far)].append(far)
    return columns, left


def _way(name: str, other: str, ranks: dict[str, int]) -> list[str]:
    """From what is needed to who needs it, by the places in the columns between."""
    between = [f"{other}\0{name}\0{rank}" for rank in range(ranks[other] + 1, ranks[name])]
    return [other, *between, name]


def _wish(name: str, left: dict[str, list[str]], spots: dict[str, Box]) -> float:
    """The height at which a name would like to stand: that of what it needs."""
    heights = [spots[o].y for o in left.get(name, ())]
    return sum(heights) / len(heights) if heights else 0.0


def _by_needed(column: list[str], graph: Graph, columns: list[list[str]]) -> list[str]:
    """The first column: the one that most lines leave from in the middle of the others."""
    order = sorted(column, key=lambda n: sum(n in needs for needs in graph.needs.values()))
    out: list[str] = []
    for number, name in enumerate(order):
        out.insert(len(out) if number % 2 else 0, name)
    middle = out.pop(0 if len(out) % 2 else -1) if out else ""
    out.insert(len(out) // 2, middle)
    return out if len(columns) > 1 else column


def _ranks(graph: Graph, linked: set[str]) -> dict[str, int]:
    # A patch needs only patches before it, so one pass in series order is enough.
    ranks: dict[str, int] = {}
    for name in graph.names:
        if name in linked:
            ranks[name] = max((ranks[o] + 1 for o in graph.needs[name]), default=0)
    return ranks


def _label(name: str) -> str:
    return name.removesuffix(".patch")


def _curves(way: list[Box]) -> str:
    """A line from the right of the first to the left of the last, through the middle of others."""
    first, last = way[0], way[-1]
    x, y = first.x + first.width, first.y + first.height / 2
    out = f"M{x:.1f} {y:.1f}"
    for spot in way[1:]:
        x2, y2 = spot.x, spot.y + spot.height / 2
        bend = (x2 - x) / 2
        out += f"C{x + bend:.1f} {y:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        x, y = x2, y2
        if spot is not last:
            x += spot.width
            out += f"H{x:.1f}"
    return out
