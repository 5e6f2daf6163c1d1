"""`patchkit refresh`: what was done in the work tree becomes the patch."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Accept, Check, Date, Guard, Json, Offline, Pin, Source

EXAMPLES = (
    "Examples:  patchkit refresh    patchkit refresh --from-commits    "
    "patchkit refresh lanes-keep-order    (after an edit of the patch file by hand)"
)


def run(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATCH]...",
            help="Patches whose files were edited by hand, or stand at an offset.",
        ),
    ] = None,
    pin: Pin = None,
    tree: Annotated[
        str | None,
        typer.Option("--tree", metavar="DIR", help="The work tree. Without it: build/edit-PIN."),
    ] = None,
    from_commits: bool = typer.Option(
        False, "--from-commits", help="Take the work tree's commits back, each as a patch."
    ),
    add: bool = typer.Option(False, "--add", help="Take new files that git does not track, too."),
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="TEXT", help="Another subject.")
    ] = None,
    guard: Guard = None,
    accept: Accept = None,
    date: Date = None,
    check: Check = False,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Write the patch that the work tree was laid out for, and carry later patches over.

    Refused, with nothing done, where a later patch breaks: which, which hunk, and what to do.
    """
    from patchkit.cli.out import Out
    from patchkit.cli.refreshing import Wish, refresh_all

    wish = Wish(
        tuple(names or ()),
        pin,
        tree,
        from_commits,
        add,
        subject,
        guard,
        tuple(accept or ()),
        date,
        check,
        source,
        offline,
    )
    out = Out("refresh", as_json=as_json)
    refresh_all(out, context.obj, wish, quiet=as_json)
    raise typer.Exit(out.close())
