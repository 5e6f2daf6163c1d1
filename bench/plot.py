"""Draws docs/speed.svg from the results: growth with patches, growth with touched files.

The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from bench.ours import FIRST
from bench.peers import AM, FLOOR
from bench.results import Results

DRAWING = Path(__file__).resolve().parents[1] / "docs" / "speed.svg"
WIDTH, HEIGHT = 420, 300
"""Of one panel, in points; the drawing has two of them."""
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 34, 46
LINES = (
    (FIRST, "patchkit apply", "#0b57d0"),
    (FLOOR.name, "the floor", "#6b7280"),
    (AM.name, "git am", "#b3261e"),
)
PANELS = (("growth", "patches"), ("files", "touched files"))
STEPS = (1, 2, 5)

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """From values to points of one panel, both axes linear from 0."""

    right: float
    top: float
    offset: float

    def x(self, value: float) -> float:
        """Where a number of patches stands."""
        return self.offset + LEFT + value / self.right * (WIDTH - LEFT - RIGHT)

    def y(self, seconds: float) -> float:
        """Where a number of seconds stands."""
        return HEIGHT - BOTTOM - seconds / self.top * (HEIGHT - TOP - BOTTOM)


def draw(results: Results) -> str:
    """The whole drawing. Raises KeyError where growth was not measured."""
    body: list[str] = []
    for number, (part, what) in enumerate(PANELS):
        body += _panel(results, part, what, number * WIDTH)
    width = WIDTH * len(PANELS)
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">',
        "<title>CPU seconds of applying, by patches and by touched files</title>",
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
        *body,
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _panel(results: Results, part: str, what: str, offset: float) -> Iterator[str]:
    lines = {tool: _points(results, part, tool) for tool, _, _ in LINES}
    if not lines[FIRST]:
        raise KeyError(f"{part} was not measured: python -m bench {part}")
    # git am is far above the others; the panel is as high as these need.
    low = [second for tool in (FIRST, FLOOR.name) for _, second in lines[tool]]
    scale = Scale(max(n for n, _ in lines[FIRST]), 1.25 * max(low), offset)
    yield _text(offset + LEFT, 18, f"CPU seconds by {what}", "start", size=13)
    yield from _axes(scale, what)
    for at, (tool, name, colour) in enumerate(LINES):
        shown = _below(lines[tool], scale.top)
        corners = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in shown)
        yield f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for x, y in lines[tool]:
            if y <= scale.top:
                circle = f'cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="3"'
                yield f'<circle {circle} fill="{colour}"/>'
        last = lines[tool][-1]
        words = f"{name}: {last[1]:.2f} s at {last[0]:.0f}"
        yield _text(scale.offset + LEFT + 110, TOP + 12 + 14 * at, words, "start", colour)


def _points(results: Results, part: str, tool: str) -> list[Point]:
    return [(float(r.n), r.above_s) for r in results.rows(part) if r.tool == tool and not r.note]


def _below(points: Sequence[Point], top: float) -> list[Point]:
    """The line up to where it leaves the panel."""
    shown: list[Point] = []
    for x, y in points:
        if y > top:
            if shown:
                before_x, before_y = shown[-1]
                part = (top - before_y) / (y - before_y)
                shown.append((before_x + part * (x - before_x), top))
            break
        shown.append((x, y))
    return shown


def _axes(scale: Scale, what: str) -> Iterator[str]:
    left, right = scale.x(0), scale.x(scale.right)
    floor, top = scale.y(0), scale.y(scale.top)
    for value in _ticks(scale.top):
        y = scale.y(value)
        line = f'x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"'
        yield f'<line {line} stroke="#e5e7eb"/>'
        yield _text(left - 6, y + 4, f"{value:g}", "end")
    for value in _ticks(scale.right):
        yield _text(scale.x(value), floor + 16, f"{value:g}", "middle")
    for ends in ((left, floor, right, floor), (left, floor, left, top)):
        x1, y1, x2, y2 = ends
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        yield f'<line {line} stroke="#374151"/>'
    yield _text((left + right) / 2, floor + 34, what, "middle")


def _ticks(top: float) -> list[float]:
    """Round values from 0 to `top`, four to eight of them."""
    power = 10.0 ** len(str(int(top)))
    while True:
        for step in reversed(STEPS):
            if top / (step * power) >= 4:
                return [step * power * k for k in range(int(top / (step * power)) + 1)]
        power /= 10


def _text(
    x: float, y: float, words: str, anchor: str, colour: str = "#111827", size: int = 11
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}">{escape(words)}</text>'
