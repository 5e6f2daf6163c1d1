"""`patchkit cache`: what the user's cache holds, and freeing it."""

from __future__ import annotations

import typer

from patchkit.cli.options import Json

EXAMPLES = "Examples:  patchkit cache    patchkit cache --clear"


def run(
    clear: bool = typer.Option(False, "--clear", help="Remove all of it."), as_json: Json = False
) -> None:
    """Show the cache of all projects: sources, objects, results. $PATCHKIT_CACHE moves it."""
    from patchkit.cli.out import Out
    from patchkit.store import cache

    out = Out("cache", as_json=as_json)
    rows = cache.clear() if clear else cache.usage()
    out.put(
        folder=cache.cache_root(),
        cleared=clear,
        parts=[{"name": u.name, "what": u.what, "files": u.files, "bytes": u.size} for u in rows],
    )
    out.line(cache.cache_root())
    table = [(u.name, u.what, str(u.files), f"{u.size / 1e6:.1f}") for u in rows]
    out.table("", ("part", "what", "files", "MB"), table, right="files MB")
    if clear:
        out.line("cleared")
    raise typer.Exit(out.close())
