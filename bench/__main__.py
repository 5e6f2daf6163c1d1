"""`python -m bench`: measure, print a table, write bench/results.json.

python -m bench               side by side, start-up, growth
python -m bench patches       one part: patches, start, growth, files
python -m bench plot          draw docs/speed.svg, put the figures into docs/speed.md
python -m bench show          print bench/results.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import ours, peers
from bench.measure import Cost, machine, versions
from bench.page import PAGE, page
from bench.plot import DRAWING, draw
from bench.results import Results, Row, row
from bench.series import Made, many_files, many_patches, with_last_changed
from bench.show import show
from bench.work import Ground, Project, lay, project

SIZES = (6, 50, 500)
PATCHES = (6, 50, 100, 200, 500, 1000, 2000)
FILES = (1, 10, 100, 300, 1000, 2000, 3000)
OUR_RUNS = 5
START_RUNS = 15
PARTS = ("patches", "start", "growth", "files")

Once = Callable[[], Cost]


def main() -> None:
    """Run what the command line asks for."""
    about = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser("python -m bench", description=about[0])
    parser.add_argument("what", nargs="*", choices=[*PARTS, "plot", "show", []], help="one part")
    asked = parser.parse_args().what or list(PARTS)
    results = Results.load()
    if wanted := [part for part in PARTS if part in asked]:
        with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as at:
            ground = lay(Path(at))
            for part in wanted:
                told = {"machine": machine(), "versions": versions()}
                results.put(part, measured(part, ground), told)
                results.save()
    if "plot" in asked:
        DRAWING.write_text(draw(results))
        PAGE.write_text(page(PAGE.read_text(), results))
        print(f"drawn: {DRAWING}; figures: {PAGE}")
    if wanted or "show" in asked:
        sys.stdout.write(show(results))


def measured(part: str, ground: Ground) -> Iterable[Row]:
    """The rows of one part."""
    if part == "start":
        return start(ground)
    if part == "patches":
        return [each for n in SIZES for each in side_by_side(ground, n)]
    if part == "growth":
        return [each for n in PATCHES for each in growing(ground, n, many_patches(ground.files, n))]
    return [each for n in FILES for each in growing(ground, n, many_files(ground.files, n))]


def start(ground: Ground) -> list[Row]:
    """Start-up alone, against the library that takes most of it."""
    tools: dict[str, tuple[Once, int]] = {
        ours.VERSION: (lambda: ours.version(ground.at), START_RUNS),
        ours.HELP: (lambda: ours.help_text(ground.at), START_RUNS),
        ours.TYPER: (lambda: ours.import_typer(ground.at), START_RUNS),
        ours.BARE: (lambda: ours.bare_python(ground.at), START_RUNS),
    }
    return [row(tool, 0, costs) for tool, costs in taken(tools, "start").items()]


def side_by_side(ground: Ground, n: int) -> list[Row]:
    """Everybody on the same series of `n` patches, in turns."""
    made = many_patches(ground.files, n)
    series = project(ground, f"patches-{n}", made)
    other = project(ground, f"changed-{n}", with_last_changed(made))
    own = ours.Ours(ground, series, other)
    own.commits()
    tools: dict[str, tuple[Once, int]] = {
        "start": (lambda: ours.version(ground.at), OUR_RUNS),
        ours.FIRST: (own.first, OUR_RUNS),
        ours.CHANGED: (own.last_changed, OUR_RUNS),
        ours.UNCHANGED: (own.unchanged, OUR_RUNS),
    }
    here = [p for p in peers.PEERS if p.installed and n <= p.most]
    for peer in here:
        tools[peer.name] = (_peer(peer, ground, series), peer.runs)
    costs = taken(tools, f"{n} patches")
    rows = _rows(costs, n)
    return rows + [Row(p.name, n, note="not here") for p in peers.PEERS if p not in here]


def growing(ground: Ground, n: int, made: Made) -> list[Row]:
    """Ours, git am and the floor on one series."""
    series = project(ground, f"growing-{len(made.patches)}-{n}", made)
    own = ours.Ours(ground, series)
    tools: dict[str, tuple[Once, int]] = {
        "start": (lambda: ours.version(ground.at), 3),
        ours.FIRST: (own.first, 3),
        peers.FLOOR.name: (_peer(peers.FLOOR, ground, series), 3),
        peers.AM.name: (_peer(peers.AM, ground, series), 1),
    }
    return _rows(taken(tools, f"{len(made.patches)} patches, {len(made.files)} files"), n)


def taken(tools: dict[str, tuple[Once, int]], what: str) -> dict[str, list[Cost]]:
    """The costs of each tool's runs. They take turns, so that a busy moment of the machine does
    not meet one of them alone."""
    costs: dict[str, list[Cost]] = {tool: [] for tool in tools}
    for turn in range(max(runs for _, runs in tools.values())):
        for tool, (once, runs) in tools.items():
            if turn < runs:
                print(f"{what}: turn {turn + 1}, {tool}", file=sys.stderr)
                costs[tool].append(once())
    return costs


def _rows(costs: dict[str, list[Cost]], n: int) -> list[Row]:
    start = row("start", n, costs.pop("start")).cpu_s
    return [
        row(tool, n, each, start if tool.startswith(ours.FIRST) else 0.0)
        for tool, each in costs.items()
    ]


def _peer(peer: peers.Peer, ground: Ground, series: Project) -> Once:
    return lambda: peers.once(peer, ground, series)


if __name__ == "__main__":
    main()
