"""`patchkit drop`: patches taken out of the series, with their proofs."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Check, Json, Offline, Pin, Source

EXAMPLES = "Examples:  patchkit drop fix-lanes    patchkit drop fix-lanes fix-gates --check"


def run(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="PATCH...", help="What to take out.")],
    pin: Pin = None,
    check: Check = False,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Remove patches: files, lines of the series, proofs. Refused where a later patch needs one."""
    from patchkit.authoring.arrange import drop
    from patchkit.authoring.session import session
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import finish, said_first

    out = Out("drop", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        ready = drop(held.standing(held.pin(pin)), names)
        finish(out, ready, held.commit(ready, "drop", dry=check), dry=check)
    raise typer.Exit(out.close())
