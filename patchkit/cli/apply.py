"""`patchkit apply`: a pin's series as a work tree, or loose patches in a folder; or either in an
installed package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from patchkit.cli.options import Exclude, Installed, Json, Offline, Python, Site, Source, Stack
from patchkit.errors import UsageFault

EXAMPLES = (
    "Examples:  patchkit apply --pin v0.30.0    patchkit apply --pin v0.30.0 --all --tree-only    "
    "patchkit apply fix.patch --to DIR    patchkit apply --series DIR --to DIR --check    "
    "patchkit apply --pin v0.30.0 --installed --python python3"
)


def run(
    context: typer.Context,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Loose patches, in order.")
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin",
            metavar="PIN",
            help="The pinned release, as in pins.toml. With --installed: one a package.",
        ),
    ] = None,
    stack: Stack = None,
    every: bool = typer.Option(False, "--all", help="The whole series, every guard on."),
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="DIR", help="Where to. With --pin: build/UPSTREAM-PIN when not given."
        ),
    ] = None,
    upto: Annotated[
        str | None, typer.Option("--upto", metavar="PATCH", help="Stop after this patch.")
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="DIR", help="A quilt folder, for --to.")
    ] = None,
    source: Source = None,
    tree_only: bool = typer.Option(
        False, "--tree-only", help="Stop at the tree id; write no files."
    ),
    check: bool = typer.Option(False, "--check", help="Write nothing; say what would happen."),
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="FILE:LINE", help="A place that settles an ambiguous hunk."
        ),
    ] = None,
    strip: Annotated[
        int | None, typer.Option("-p", "--strip", metavar="N", min=0, help="Strip level of FILEs.")
    ] = None,
    directory: Annotated[
        str | None,
        typer.Option("--directory", metavar="DIR", help="Folder that FILEs are rooted in."),
    ] = None,
    installed: Installed = False,
    python: Python = None,
    site: Site = None,
    exclude: Exclude = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Apply a pin's series exactly, or loose patches. All or nothing; a second time is a no-op."""
    loose = bool(files or series)
    _fit(
        loose,
        installed,
        pins={
            "--pin": pin,
            "--stack": stack,
            "--all": every,
            "--upto": upto,
            "--tree-only": tree_only,
            "--source": source,
            "--offline": offline,
        },
        files={"--accept": accept, "-p": strip, "--directory": directory},
        tree={"--to": to, "--tree-only": tree_only, "--source": source},
        package={"--python": python, "--site": site, "--exclude": exclude},
    )
    if files and series:
        raise UsageFault.because("give FILEs or --series, not both")
    if stack is not None and every:
        raise UsageFault.because("--stack and --all exclude each other")
    if installed:
        from patchkit.cli.apply_installed import Asked, run_files, run_pins

        asked = Asked(
            context.obj,
            python,
            site,
            tuple(pin or ()),
            stack,
            every,
            upto,
            tuple(exclude or ()),
            check,
            as_json,
        )
        if not loose:
            raise typer.Exit(run_pins(asked))
        raise typer.Exit(run_files(asked, files or [], series, accept or [], strip, directory))
    if loose:
        if to is None:
            raise UsageFault.because(
                "--to is needed: the folder to patch", next="--to DIR, or --installed"
            )
        from patchkit.cli.apply_loose import run_loose

        raise typer.Exit(
            run_loose(files or [], series, to, check, accept or [], strip, directory, as_json)
        )
    if len(pin or ()) > 1:
        raise UsageFault.because("several pins go with --installed only")
    from patchkit.cli.apply_pin import run_pin

    raise typer.Exit(
        run_pin(
            context.obj,
            pin[0] if pin else None,
            stack,
            every,
            to,
            upto,
            source,
            tree_only,
            check,
            offline,
            as_json,
        )
    )


def _fit(
    loose: bool,
    installed: bool,
    *,
    pins: Mapping[str, object],
    files: Mapping[str, object],
    tree: Mapping[str, object],
    package: Mapping[str, object],
) -> None:
    """Refuse options that do not go with what is applied, or with where to."""
    rows = [
        (loose, pins, "goes with a pin's series, not with loose patches"),
        (not loose, files, "goes with loose patches, not with a pin's series"),
        (installed, tree, "goes with a tree, not with --installed"),
        (not installed, package, "goes with --installed"),
    ]
    for unfit, options, why in rows:
        for name, given in options.items():
            if given == "":
                # A script with an unset variable must not be taken for one that said nothing.
                raise UsageFault.because(f"{name} is given, and empty")
            if unfit and given not in (None, False, []):
                raise UsageFault.because(f"{name} {why}")
