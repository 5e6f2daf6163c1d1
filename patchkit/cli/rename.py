"""`patchkit rename`: a patch under another name, with its proof and its place in the lock."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Check, Json, Offline, Pin, Source

EXAMPLES = "Examples:  patchkit rename fix-lanes lanes-keep-order"


def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PATCH", help="The patch as it is called now.")],
    to: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    pin: Pin = None,
    check: Check = False,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Give a patch another name: its file, its line of the series, its proof, and the lock."""
    from patchkit.authoring.arrange import rename
    from patchkit.authoring.names import patch_name
    from patchkit.authoring.session import session
    from patchkit.authoring.workplace import default_place, near, rename_point
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import finish, said_first

    out = Out("rename", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        standing = held.standing(held.pin(pin))
        index = standing.index(name)
        ready = rename(standing, name, to)
        finish(out, ready, held.commit(ready, "rename", dry=check), dry=check)
        at = default_place(held.project, ready.pin)
        if not check and rename_point(at, ready.pin, standing.names[index], patch_name(to)):
            out.line(f"the work tree {near(at)} is for {patch_name(to)} now")
    raise typer.Exit(out.close())
