"""`patchkit new`: a work tree in which a patch is made that the series does not have yet."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import (
    After,
    Author,
    Date,
    EditTree,
    First,
    Guard,
    Json,
    Offline,
    Pin,
    Source,
)

EXAMPLES = (
    'Examples:  patchkit new lanes-keep-order --subject "Keep the order of lanes"    '
    "patchkit new tp3-heads --after tp3-config --guard tp3"
)


def run(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of the patch; .patch may be left out.")
    ],
    pin: Pin = None,
    after: After = None,
    first: First = False,
    guard: Guard = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="TEXT", help="One line; else the words of NAME."),
    ] = None,
    author: Author = None,
    date: Date = None,
    to: EditTree = None,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Begin a patch: lay out a work tree. Edit there, test, then `patchkit refresh`."""
    from patchkit.authoring.edit import begin_new
    from patchkit.authoring.session import session
    from patchkit.authoring.when import when
    from patchkit.cli.begun import report
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import one_place, said_first

    one_place(after, first)
    moment = when(date)
    out = Out("new", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        begun = begin_new(
            held.standing(held.pin(pin)),
            name,
            moment,
            after=after,
            first=first,
            guard=guard,
            subject=subject,
            author=author,
            to=to,
        )
    report(out, begun, new=True, default=to is None)
    raise typer.Exit(out.close())
