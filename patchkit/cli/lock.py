"""`patchkit lock`: record what applying gives, path by path, patch by patch."""

from __future__ import annotations

import typer

from patchkit.cli.options import Json, Offline, Pin, Source

EXAMPLES = "Examples:  patchkit lock    patchkit lock --pin v0.30.0    patchkit lock --check"


def run(
    context: typer.Context,
    pin: Pin = None,
    source: Source = None,
    check: bool = typer.Option(False, "--check", help="Write nothing; exit 1 if it would change."),
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Make series.lock anew from the series and the pinned source. All pins without --pin."""
    from patchkit.check.locking import relock
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.project import find

    out = Out("lock", as_json=as_json)
    project = find(context.obj)
    names = (
        [project.pins.pin(pin).name]
        if pin
        else [n for n in project.pins.pins if project.has_series(n)]
    )
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        rows: list[dict[str, object]] = []
        table: list[tuple[str, ...]] = []
        for name in names:
            done = relock(project, name, bases, source=source, dry=check)
            out.find(done.findings)
            rows.append({"pin": name, "state": done.state, "paths": list(done.paths)})
            table.append((name, done.state, str(len(done.paths))))
    out.put(pins=rows)
    out.table("", ("pin", "lock", "paths changed"), table, right="paths changed")
    raise typer.Exit(out.close())
