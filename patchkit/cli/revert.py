"""`patchkit revert`: take back what apply did, byte for byte."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json

EXAMPLES = "Examples:  patchkit revert --to DIR    patchkit revert --to DIR --check"


def run(
    to: Annotated[
        str | None, typer.Option("--to", metavar="DIR", help="A folder that apply FILE… changed.")
    ] = None,
    check: bool = typer.Option(False, "--check", help="Write nothing; say what would happen."),
    as_json: Json = False,
) -> None:
    """Undo every recorded patch. Refused where a file is not as apply left it."""
    from patchkit.cli.out import Out
    from patchkit.errors import UsageFault
    from patchkit.target import folder

    if to is None:
        raise UsageFault.because("--to is needed: the folder to take back", next="--to DIR")
    out = Out("revert", as_json=as_json)
    done = folder.revert(to, dry=check)
    if done.recovered is not None:
        out.line(f"an interrupted {done.recovered.what} was undone first")
    out.put(to=to, changed=list(done.changed))
    out.line(f"{len(done.changed)} file(s) {'would be ' if check else ''}put back in {to}")
    raise typer.Exit(out.close())
