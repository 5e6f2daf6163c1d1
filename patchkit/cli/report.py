"""`patchkit report`: a static site of the series, its releases and its proofs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline
from patchkit.errors import UsageFault

if TYPE_CHECKING:
    from patchkit.derive.project import Project
    from patchkit.series.pins import Pin

EXAMPLES = (
    "Examples:  patchkit report -o build/report    "
    "patchkit report --pin v0.30.0 --onto v0.31.0 -o build/report"
)


def run(
    context: typer.Context,
    to: Annotated[str, typer.Option("-o", "--to", metavar="DIR", help="The folder of the site.")],
    pins: Annotated[
        list[str] | None,
        typer.Option("--pin", metavar="PIN", help="Only this series; several times."),
    ] = None,
    onto: Annotated[
        list[str] | None, typer.Option("--onto", metavar="PIN", help="A column; several times.")
    ] = None,
    every: bool = typer.Option(False, "--all", help="Columns for earlier releases, too."),
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="EXE", help="The interpreter whose results count."),
    ] = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Write pages for a browser: patch by release, every patch, the graph. Proofs are not run:
    what `prove` and `drift --prove` recorded is shown."""
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.project import find
    from patchkit.prove import environment
    from patchkit.report.gather import gather
    from patchkit.report.publish import publish
    from patchkit.report.site import INDEX, site

    out = Out("report", as_json=as_json)
    project = find(context.obj)
    digest = environment.given(python).digest if python else environment.digest_of_list()
    pages = []
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        for pin in _pins(project, pins or []):
            page, findings = gather(bases, pin, _columns(project, pin, onto or [], every), digest)
            out.find(findings)
            pages += [page] if page is not None else []
    if not out.ok():
        out.line("no report was written: a series does not apply to its pin")
        raise typer.Exit(out.close())
    count = publish(to, site(pages))
    index = os.path.join(to, INDEX)
    out.put(to=os.path.abspath(to), index=os.path.abspath(index), files=count)
    out.line(f"{index}: {count} files written")
    raise typer.Exit(out.close())


def _pins(project: Project, names: list[str]) -> list[Pin]:
    """The pins that are wanted, the latest first. Raises UsageFault where there is none."""
    from packaging.version import Version

    from patchkit.rebase.releases import version

    if names:
        return [project.one_pin(name) for name in names]
    have = [pin for name, pin in project.pins.pins.items() if project.has_series(name)]
    if not have:
        raise UsageFault.because("no pin has a series", next="patchkit new NAME")
    key = {pin.name: version(pin.name) or Version("0") for pin in have}
    return sorted(have, key=lambda pin: (key[pin.name], pin.name), reverse=True)


def _columns(project: Project, pin: Pin, onto: list[str], every: bool) -> list[Pin]:
    """The releases to compare with; none is fine here."""
    from patchkit.rebase.releases import wanted

    try:
        return [p for p in wanted(project, pin, onto, every) if p.name != pin.name]
    except UsageFault:
        return []
