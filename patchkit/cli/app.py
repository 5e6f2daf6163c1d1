"""The `patchkit` command as typer sees it: its options and its verbs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from patchkit import __version__

app = typer.Typer(
    name="patchkit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Quilt-style patch series for pinned vLLM releases: applied exactly, checked for drift.",
    epilog="Examples:  patchkit apply --pin v0.30.0    patchkit check    patchkit list",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"patchkit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    project: Annotated[
        str,
        typer.Option(
            "-C", metavar="DIR", help="The project: the nearest pins.toml upwards from DIR."
        ),
    ] = ".",
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="Print the version."),
    ] = False,
) -> None:
    """What every verb shares."""
    context.obj = project


def run() -> int:
    """Read the command line and run its verb; the exit code. A wrong command line raises typer's
    own exceptions, which say how they are shown and their exit code."""
    from patchkit.cli.verbs import register

    completing = any(name.endswith("_COMPLETE") for name in os.environ)
    register(app, [] if completing else sys.argv[1:])
    code = app(standalone_mode=False)
    return code if isinstance(code, int) else 0
