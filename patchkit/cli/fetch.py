"""`patchkit fetch`: get a pin's source, so that everything else works without a network."""

from __future__ import annotations

import typer

from patchkit.cli.options import Json, Pin, Source

EXAMPLES = "Examples:  patchkit fetch --pin v0.30.0    patchkit fetch    (all pins)"


def run(
    context: typer.Context, pin: Pin = None, source: Source = None, as_json: Json = False
) -> None:
    """Download, verify and import the pinned source. All pins without --pin."""
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.project import find

    out = Out("fetch", as_json=as_json)
    project = find(context.obj)
    names = [project.pins.pin(pin).name] if pin else list(project.pins.pins)
    rows = []
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, progress=bar, asking=True) as bases,
    ):
        for name in names:
            base = bases.get(project.pins.pin(name), source)
            out.find((*base.gaps, *base.drift))
            rows.append((name, base.source, base.name, base.version, base.tree_id))
    out.put(
        pins=[dict(zip(("pin", "source", "name", "version", "tree"), r, strict=True)) for r in rows]
    )
    out.table("", ("pin", "source", "from", "version", "base tree"), rows)
    raise typer.Exit(out.close())
