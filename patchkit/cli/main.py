"""The `patchkit` command: its verbs, and what happens when one of them raises."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from patchkit import __version__
from patchkit.errors import ENVIRONMENT, PatchkitError

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


def main() -> None:
    """Run the command; exits 0 fine, 1 drift or refusal, 2 wrong command line, 3 environment."""
    from patchkit.cli.verbs import register

    register(app)
    try:
        app()
    except PatchkitError as error:
        _fail(error)
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is left to say, and Python's own flush at
        # exit must not say it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except Exception as error:
        if os.environ.get("PATCHKIT_DEBUG"):
            raise
        from patchkit.cli.plain import plain

        sys.stderr.write(
            f"error: a fault of patchkit itself: {type(error).__name__}: {plain(str(error))}\n"
            "  next:     run it again with PATCHKIT_DEBUG=1 and report the traceback\n"
        )
        raise SystemExit(ENVIRONMENT) from None


def _fail(error: PatchkitError) -> None:
    from patchkit.cli.out import Out

    as_json = "--json" in sys.argv[1:]
    out = Out(_verb(), as_json=as_json)
    out.find(error.findings)
    raise SystemExit(out.close(error.exit_code))


def _verb() -> str:
    return next((a for a in sys.argv[1:] if not a.startswith("-")), "")
