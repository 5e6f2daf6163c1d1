"""`patchkit lint`: what in patch files is wrong, risky or noise."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source

EXAMPLES = (
    "Examples:  patchkit lint    patchkit lint --fix    patchkit lint fix-lanes    "
    "patchkit lint ~/Downloads/fix.patch"
)


def run(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATCH|FILE]...", help="Without one: every series."),
    ] = None,
    pin: Pin = None,
    fix: bool = typer.Option(False, "--fix", help="Mend what cannot change the effect."),
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Look for what other readers would read differently. Exit 1 on errors and warnings."""
    from patchkit.cli.linting import Asked, lint
    from patchkit.cli.out import Out

    out = Out("lint", as_json=as_json)
    asked = Asked(tuple(names or ()), pin, fix, source, offline)
    raise typer.Exit(out.close(lint(out, context.obj, asked, quiet=as_json)))
