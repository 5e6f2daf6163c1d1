"""`patchkit matrix`: every wheel that pins and stacks promise, for people and for CI."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchkit.cli.options import Json

if TYPE_CHECKING:
    from patchkit.build.matrix import Cell

EXAMPLES = (
    "Examples:  patchkit matrix    patchkit matrix --format github --affected-since origin/main"
)
FORMATS = ("table", "json", "github")
RUNNERS = {"x86_64": "ubuntu-24.04", "aarch64": "ubuntu-24.04-arm"}
"""GitHub's machines by architecture. A compiled wheel needs one of the project's own."""


def run(
    context: typer.Context,
    form: Annotated[
        str, typer.Option("--format", metavar="table|json|github", help="How it is printed.")
    ] = "table",
    revision: Annotated[
        str | None,
        typer.Option(
            "--affected-since",
            metavar="REV",
            help="Only wheels that may differ from those of this git revision.",
        ),
    ] = None,
    runnable: Annotated[
        bool, typer.Option("--runnable", help="Only cells that need no compiler.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the cells: pin, stack, how, architecture, Python, CUDA, and the command of each."""
    from patchkit.build.matrix import affected, cells, since
    from patchkit.cli.out import Out
    from patchkit.derive.project import find
    from patchkit.errors import UsageFault

    if form not in FORMATS:
        raise UsageFault.because(f"--format takes {', '.join(FORMATS)}; not {form}")
    out = Out("matrix", as_json=as_json or form == "json")
    project = find(context.obj)
    found = cells(project)
    if revision is not None:
        found = affected(project, found, *since(project, revision))
    if runnable:
        found = [cell for cell in found if cell.runnable]
    out.put(cells=[_facts(cell) for cell in found])
    if form == "github" and not as_json:
        include = [{**_facts(cell), "runner": _runner(cell)} for cell in found]
        out.line(json.dumps({"include": include}, sort_keys=True))
    else:
        rows = [(c.id, c.key, shlex.join(c.command)) for c in found]
        out.table("", ("cell", "key", "command"), rows)
    raise typer.Exit(out.close())


def _facts(cell: Cell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "pin": cell.pin,
        "stack": cell.stack,
        "how": cell.how,
        "arch": cell.arch,
        "python": cell.python,
        "cuda": cell.cuda,
        "key": cell.key,
        "runnable": cell.runnable,
        "command": shlex.join(cell.command),
    }


def _runner(cell: Cell) -> list[str]:
    if cell.runnable:
        # Laying files over a wheel needs no machine of its architecture.
        return [RUNNERS["x86_64"]]
    return ["self-hosted", cell.how, cell.arch]
