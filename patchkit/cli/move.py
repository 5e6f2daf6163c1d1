"""`patchkit move`: a patch at another place of the series."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import After, Check, First, Json, Offline, Pin, Source

EXAMPLES = "Examples:  patchkit move fix-gates --after fix-lanes    patchkit move fix-gates --first"


def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PATCH", help="The patch to move.")],
    after: After = None,
    first: First = False,
    pin: Pin = None,
    check: Check = False,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Put a patch behind another; every patch in between is carried over, or it is refused."""
    from patchkit.authoring.arrange import move
    from patchkit.authoring.session import session
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import finish, one_place, said_first
    from patchkit.errors import UsageFault

    one_place(after, first)
    if after is None and not first:
        raise UsageFault.because("--after PATCH or --first is needed", next="--after PATCH")
    out = Out("move", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        ready = move(held.standing(held.pin(pin)), name, after=after)
        finish(out, ready, held.commit(ready, "move", dry=check), dry=check)
    raise typer.Exit(out.close())
