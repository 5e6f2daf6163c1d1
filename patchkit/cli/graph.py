"""`patchkit graph`: which patch needs which."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source
from patchkit.errors import UsageFault

EXAMPLES = "Examples:  patchkit graph    patchkit graph --format mermaid"


def run(
    context: typer.Context,
    pin: Pin = None,
    form: Annotated[str, typer.Option("--format", metavar="text|mermaid", help="Form.")] = "text",
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Leave out each patch in turn and see which others do not apply any more."""
    from patchkit.bring.graph import graph_of, mermaid, text
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.project import find

    if form not in ("text", "mermaid"):
        raise UsageFault.because(f"--format {form}: not text or mermaid", next="--format mermaid")
    out = Out("graph", as_json=as_json)
    project = find(context.obj)
    chosen = project.one_pin(pin)
    series = project.series(chosen.name)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        graph = graph_of(series, bases.get(chosen, source).tree(bases.store))
    for line in text(graph) if form == "text" else mermaid(graph):
        out.line(line)
    for name, other in graph.cut():
        out.line(f"a guard cuts: {name} needs {other} (#+{graph.guards[other]})")
    out.put(
        pin=chosen.name,
        needs={name: list(others) for name, others in graph.needs.items()},
        commutes=[list(pair) for pair in graph.commutes],
        cut=[list(pair) for pair in graph.cut()],
    )
    raise typer.Exit(out.close())
