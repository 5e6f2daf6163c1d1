"""`patchkit bundle`: one file that patches an installed package in an image."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json, Stack

EXAMPLES = (
    "Examples:  patchkit bundle --pin v0.30.0 -o vllm-patch.pyz    "
    "then, in the image:  python vllm-patch.pyz apply"
)


def run(
    context: typer.Context,
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", metavar="PIN", help="The pinned release; one a package."),
    ] = None,
    stack: Stack = None,
    every: bool = typer.Option(False, "--all", help="The whole series, every guard on."),
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Without it: UPSTREAM-PIN.pyz."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="GLOB", help="Leave out these files of the patches."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a file that needs only Python 3.10 to apply, check and revert a locked series."""
    import hashlib
    import os

    from patchkit.check.installed import packet
    from patchkit.cli.out import Out
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.errors import Finding, UsageFault
    from patchkit.files.atomic import write_file
    from patchkit.target.bundle import LIMIT, make_bundle, unfit

    if stack is not None and every:
        raise UsageFault.because("--stack and --all exclude each other")
    out = Out("bundle", as_json=as_json)
    project = find(context.obj)
    chosen = None if every else project.stack(stack or "default")
    names = list(dict.fromkeys(pin)) if pin else [None]
    pins = [project.one_pin(name) for name in names]
    packets = [packet(project, p, Selection(chosen), exclude or ()) for p in pins]
    out.find(unfit(packets))
    if not out.ok():
        out.line("nothing was written")
        raise typer.Exit(out.close())
    data = make_bundle(packets)
    at = output or f"{pins[0].upstream}-{pins[0].name}.pyz"
    if len(data) > LIMIT:
        out.find(
            [
                Finding(
                    "too-large",
                    f"the bundle has {len(data)} bytes",
                    expected=f"at most {LIMIT} bytes",
                    found=f"{len(data)} bytes",
                    next="leave patches out with a stack",
                    note=True,
                )
            ]
        )
    write_file(at, data, 0o755)
    digest = hashlib.sha256(data).hexdigest()
    out.put(
        output=os.path.abspath(at),
        bytes=len(data),
        sha256=digest,
        packages=[
            {
                "name": p.dist,
                "pin": p.lock.pin.name,
                "stack": p.stack,
                "series": p.digest,
                "patches": list(p.chain.patches),
            }
            for p in packets
        ],
    )
    for p in packets:
        out.line(f"{p.dist}: {p.title}, {len(p.chain.patches)} patches, series {p.digest[:12]}")
    out.line(f"{at}: {len(data)} bytes, sha256 {digest}")
    out.line(f"in the image: python {os.path.basename(at)} apply")
    raise typer.Exit(out.close())
