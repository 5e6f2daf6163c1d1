"""`patchkit doctor`: what this machine has, and what it lacks before anything is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, Stack

if TYPE_CHECKING:
    from patchkit.cli.out import Out

EXAMPLES = "Examples:  patchkit doctor    patchkit doctor --build cuda --pin v0.30.0 --stack tp3"


def run(
    context: typer.Context,
    device: Annotated[
        str | None,
        typer.Option("--build", metavar="cuda|cpu", help="What a compiled build would lack here."),
    ] = None,
    pin: Pin = None,
    stack: Stack = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="EXE", help="The interpreter that would build."),
    ] = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="ARCH", help="Default: this machine's.")
    ] = None,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Say what patchkit finds here; with --build, all that a compiled build lacks. Exit 1 then."""
    from patchkit.cli.out import Out

    out = Out("doctor", as_json=as_json)
    if device is None:
        _surroundings(out)
        raise typer.Exit(out.close())
    from patchkit.build.ask import Asked
    from patchkit.build.run import plan
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.project import find

    project = find(context.obj)
    asked = Asked(pin, stack, device, None, None, arch, source, python)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        made = plan(project, bases, asked)
    out.find(made.missing)
    out.put(
        version=made.version,
        at=made.at,
        environment=dict(made.variables),
        command=list(made.line),
        sources=[
            {"name": f.name, "address": f.address, "ref": f.ref, "fixed": f.fixed}
            for f in made.fetched
        ],
    )
    out.line(f"in {made.at}/tree:")
    for name, value in sorted(made.variables.items()):
        out.line(f"  {name}={value}")
    out.line("  " + " ".join(made.line))
    lacking = sum(not f.note for f in made.missing)
    out.line(f"{lacking} things are missing" if lacking else "nothing is missing")
    raise typer.Exit(out.close())


def _surroundings(out: Out) -> None:
    """Python, git, the cache: what every verb needs."""
    import os
    import platform
    import shutil

    from patchkit import __version__
    from patchkit.errors import EnvironmentFault
    from patchkit.store import git
    from patchkit.store.cache import cache_root, usage

    rows = [("patchkit", __version__), ("python", platform.python_version())]
    try:
        rows.append(("git", ".".join(map(str, git.version()))))
    except EnvironmentFault as fault:
        out.find(fault.findings)
    at = cache_root()
    held = sum(part.size for part in usage())
    rows.append(("cache", f"{at}, {held / 1e6:.0f} MB"))
    above = at
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    rows.append(("disk", f"{shutil.disk_usage(above).free / 1e9:.0f} GB free there"))
    rows.append(("quilt", shutil.which("quilt") or "none (only tests need it)"))
    out.put(**dict(rows))
    for name, text in rows:
        out.line(f"{name + ':':10} {text}")
