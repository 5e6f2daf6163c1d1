"""`patchkit apply`: a pin's series as a work tree, or loose patches in a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, Stack

EXAMPLES = (
    "Examples:  patchkit apply --pin v0.30.0    patchkit apply --pin v0.30.0 --all --tree-only    "
    "patchkit apply fix.patch --to DIR    patchkit apply --series DIR --to DIR --check"
)


def run(
    context: typer.Context,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Loose patches, in order.")
    ] = None,
    pin: Pin = None,
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
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Apply a pin's series exactly, or loose patches. All or nothing; a second time is a no-op."""
    from patchkit.errors import UsageFault

    if files or series:
        for name, given in (("--pin", pin), ("--stack", stack), ("--all", every), ("--upto", upto)):
            if given:
                raise UsageFault.because(f"{name} goes with a pin's series, not with loose patches")
        if files and series:
            raise UsageFault.because("give FILEs or --series, not both")
        if to is None:
            raise UsageFault.because("--to is needed: the folder to patch", next="--to DIR")
        from patchkit.cli.apply_loose import run_loose

        raise typer.Exit(
            run_loose(files or [], series, to, check, accept or [], strip, directory, as_json)
        )
    if stack is not None and every:
        raise UsageFault.because("--stack and --all exclude each other")
    for name, unfit in (("--accept", accept), ("-p", strip), ("--directory", directory)):
        if unfit is not None:
            raise UsageFault.because(f"{name} goes with loose patches, not with a pin's series")
    from patchkit.cli.apply_pin import run_pin

    raise typer.Exit(
        run_pin(
            context.obj, pin, stack, every, to, upto, source, tree_only, check, offline, as_json
        )
    )
