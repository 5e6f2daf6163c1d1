"""`patchkit doctor`: what this machine has, and what it lacks before anything is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, Stack
from patchkit.errors import Finding, PatchkitError, Where

if TYPE_CHECKING:
    from patchkit.cli.out import Out

ROOM = 2_000_000_000
"""Bytes that a first release needs."""
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
    """Say what this machine has and what is wrong with the project, each with the command that
    mends it; with --build, all that a compiled build lacks. Exit 1 then."""
    from patchkit.cli.out import Out

    out = Out("doctor", as_json=as_json)
    if device is None:
        _surroundings(out)
        _project(out, context.obj)
        wrong = sum(not f.note for f in out.findings)
        notes = len(out.findings) - wrong
        out.line(f"{wrong} fault(s), {notes} note(s)" if out.findings else "nothing is wrong")
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
    words = "1 thing is missing" if lacking == 1 else f"{lacking} things are missing"
    out.line(words if lacking else "nothing is missing")
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
    free = shutil.disk_usage(above).free
    rows.append(("disk", f"{free / 1e9:.0f} GB free there"))
    out.find(_room(at, above, free))
    rows.append(("quilt", shutil.which("quilt") or "none (only tests need it)"))
    out.put(**dict(rows))
    for name, text in rows:
        out.line(f"{name + ':':10} {text}")


def _room(at: str, above: str, free: int) -> list[Finding]:
    """What the cache folder lacks: room, or the right to write there."""
    import os

    where = Where(file=at)
    way = "PATCHKIT_CACHE=DIR, with a folder on another disk; or patchkit cache --clear"
    out = []
    if free < ROOM:
        out.append(
            Finding(
                "disk",
                "there is little room for the cache",
                where,
                expected=f"{ROOM / 1e9:.0f} GB: a release and its objects",
                found=f"{free / 1e9:.1f} GB",
                next=way,
                note=True,
            )
        )
    if not os.access(above, os.W_OK):
        out.append(Finding("disk", "the cache folder cannot be written", where, next=way))
    return out


def _project(out: Out, start: str) -> None:
    """The project at or above `start`, if there is one."""
    from patchkit.authoring.health import health
    from patchkit.derive.project import find

    try:
        project = find(start)
    except PatchkitError as error:
        absent = all(f.name == "not-a-project" for f in error.findings)
        if absent:
            out.line("project:   none here")
        out.find(f.as_note() if absent else f for f in error.findings)
        return
    if project.recovered is not None:
        out.line(f"an interrupted {project.recovered.what} was undone")
    out.put(project=str(project.folder), pins=list(project.pins.pins))
    have = [name for name in project.pins.pins if project.has_series(name)]
    out.line(f"project:   {project.folder}, series for {', '.join(have) or 'no pin'}")
    out.find(health(project))
