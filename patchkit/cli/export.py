"""`patchkit export`: the series for quilt, git am, or as one diff."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, StackOrWhole
from patchkit.errors import Finding, Refused, UsageFault, Where

EXAMPLES = (
    "Examples:  patchkit export --format quilt -o patches    patchkit export --format am -o ."
)


def run(
    context: typer.Context,
    to: Annotated[str, typer.Option("-o", "--to", metavar="DIR", help="A folder.")],
    form: Annotated[
        str, typer.Option("--format", metavar="quilt|am|single|dir", help="Form.")
    ] = "quilt",
    pin: Pin = None,
    stack: StackOrWhole = None,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Write the patches of a pin (every guard on without --stack) into a folder."""
    from patchkit.bring.export import FORMATS, export
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.engine.model import File
    from patchkit.files.publish import publish, take_back
    from patchkit.files.root import Root

    if form not in FORMATS:
        raise UsageFault.because(f"--format {form}: not one of {', '.join(FORMATS)}")
    out = Out("export", as_json=as_json)
    project = find(context.obj)
    chosen = project.one_pin(pin)
    series = project.series(chosen.name)
    selection = Selection(project.stack(stack) if stack else None)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        base = bases.get(chosen, source).tree(bases.store)
        derived = derive(series, base, selection)
        out.find(derived.findings)
        if not derived.ok:
            raise typer.Exit(out.close())
        taken = [e for e, c in zip(series.entries, selection.of(series), strict=True) if c]
        try:
            files = export(derived, base, form, taken)
        except ValueError as error:
            raise Refused(
                Finding(
                    "unsupported",
                    f"{form} is for patches of strip level 1 that are not reversed",
                    Where(patch=str(error)),
                    found=str(error),
                    next="patchkit export --format quilt",
                )
            ) from None
    undone = take_back(to)
    if undone is not None:
        out.line(undone.words)
    root = Root(to)
    there = sorted(name for name in files if root.stat(name) is not None)
    if there:
        raise Refused(
            Finding(
                "target-exists",
                f"{to} holds {', '.join(there[:5])} already",
                Where(file=there[0]),
                expected="a folder without files of those names",
                found=f"{len(there)} of {len(files)}",
                next="export into a new folder",
            )
        )
    publish(to, {name: File(data) for name, data in files.items()}, "export")
    out.put(to=os.path.abspath(to), files=sorted(files))
    out.line(f"{len(files)} file(s) in {to}")
    raise typer.Exit(out.close())
