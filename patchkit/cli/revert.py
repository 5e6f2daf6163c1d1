"""`patchkit revert`: take back what apply did, byte for byte."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from patchkit.cli.options import Installed, Json, Python, Site

EXAMPLES = (
    "Examples:  patchkit revert --to DIR    patchkit revert --to DIR --check    "
    "patchkit revert --installed --python python3"
)


def run(
    context: typer.Context,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DIR", help="A folder that apply FILE… changed.")
    ] = None,
    check: bool = typer.Option(False, "--check", help="Write nothing; say what would happen."),
    discard: bool = typer.Option(
        False,
        "--discard-edits",
        help="With --installed: files that were edited by hand since go back, too.",
    ),
    installed: Installed = False,
    python: Python = None,
    site: Site = None,
    as_json: Json = False,
) -> None:
    """Undo every recorded patch. Refused where a file is not as apply left it."""
    from patchkit.cli.out import Out
    from patchkit.errors import UsageFault
    from patchkit.target import folder

    if installed:
        if to is not None:
            raise UsageFault.because("--to goes with a tree, not with --installed")
        from patchkit.cli.apply_installed import Asked, run_revert

        asked = Asked(context.obj, python, site, check=check, as_json=as_json)
        raise typer.Exit(run_revert(asked, discard=discard))
    if python is not None or site is not None:
        raise UsageFault.because("--python and --site go with --installed")
    if discard:
        raise UsageFault.because("--discard-edits goes with --installed")
    if to is None:
        raise UsageFault.because(
            "--to is needed: the folder to take back", next="--to DIR, or --installed"
        )
    out = Out("revert", as_json=as_json)
    done = folder.revert(to, dry=check)
    if done.recovered is not None:
        out.line(done.recovered.words)
    out.find(done.findings)
    out.put(to=os.path.abspath(to), changed=list(done.changed))
    if done.ok:
        out.line(f"{len(done.changed)} file(s) {'would be ' if check else ''}put back in {to}")
    else:
        out.line("nothing more was written" if done.recovered else "nothing was written")
    raise typer.Exit(out.close())
