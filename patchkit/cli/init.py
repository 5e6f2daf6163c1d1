"""`patchkit init`: a project of one's own."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from patchkit.cli.options import Check, Json

EXAMPLES = (
    "Examples:  patchkit init --upstream vllm --pin v0.30.0    "
    "patchkit init mypatches --upstream mylib --source ../mylib"
)


def run(
    context: typer.Context,
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Where; here without it.")
    ] = None,
    upstream: Annotated[
        str, typer.Option("--upstream", metavar="NAME", help="The project that is patched.")
    ] = "vllm",
    pin: Annotated[
        str | None, typer.Option("--pin", metavar="PIN", help="Its release, as its tag is called.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="vllm or plain; plain for other names."),
    ] = None,
    git: Annotated[str | None, typer.Option("--git", metavar="URL", help="Its repository.")] = None,
    pypi: Annotated[
        str | None, typer.Option("--pypi", metavar="NAME", help="Its name on the package index.")
    ] = None,
    package: Annotated[
        str | None, typer.Option("--package", metavar="NAME", help="What Python imports it as.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="sdist|git|DIR",
            help="Where its base comes from, now and in every later command.",
        ),
    ] = None,
    check: Check = False,
    as_json: Json = False,
) -> None:
    """Write pins.toml, an empty series with its lock, and what git and CI need."""
    from patchkit.authoring.start import Asked, start
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress

    out = Out("init", as_json=as_json)
    asked = Asked(upstream, pin, kind, git, pypi, package, source)
    with progress(quiet=as_json) as bar:
        done = start(folder or context.obj, asked, progress=bar, dry=check)
    out.find(done.findings)
    out.put(folder=str(done.folder), pin=done.pin, written=list(done.written))
    shown = os.path.relpath(done.folder)
    shown = str(done.folder) if shown.startswith("..") else shown
    out.line(f"{shown}: {'would write' if check else 'written'} {', '.join(done.written)}")
    away = "" if shown == "." else f"cd {shown} && "
    if done.pin is None:
        out.line(f"no pin yet; next: {away}patchkit pin RELEASE --add, then patchkit new NAME")
    else:
        out.line(f"pinned {upstream} {done.pin}; next: {away}patchkit new NAME")
    raise typer.Exit(out.close())
