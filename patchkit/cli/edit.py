"""`patchkit edit`: a work tree at a patch of the series."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import EditTree, Json, Offline, Pin, Source

EXAMPLES = (
    "Examples:  patchkit edit lanes-keep-order    "
    "patchkit edit    (the last patch: every patch is a commit; git rebase -i base works)"
)


def run(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[PATCH]", help="The patch to change; the last one without it."),
    ] = None,
    pin: Pin = None,
    to: EditTree = None,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Lay out a work tree with the series up to PATCH. Edit there, then `patchkit refresh`."""
    from patchkit.authoring.edit import begin_edit
    from patchkit.authoring.session import session
    from patchkit.cli.begun import report
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import said_first

    out = Out("edit", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        begun = begin_edit(held.standing(held.pin(pin)), name, to=to)
    report(out, begun, new=False, default=to is None)
    raise typer.Exit(out.close())
