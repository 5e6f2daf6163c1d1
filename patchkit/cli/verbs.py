"""The list of verbs, in the order in which --help shows them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

MODULES = (
    "apply",
    "check",
    "lock",
    "list_",
    "show",
    "prove",
    "drift",
    "blame",
    "diff",
    "rebase",
    "graph",
    "export",
    "report",
    "fetch",
    "pin",
    "doctor",
    "build",
    "matrix",
    "revert",
    "bundle",
    "new",
    "edit",
    "refresh",
    "import_",
    "lint",
    "rename",
    "move",
    "drop",
    "init",
    "cache",
)


def register(app: typer.Typer, args: Sequence[str]) -> None:
    """Add the verb that `args` ask for to `app`; all of them where they ask for none (--help), or
    for none that there is. A verb's module is `patchkit.cli.NAME`, its function `run`.

    Loading all of them takes as long as loading typer.
    """
    verbs = {name.rstrip("_").replace("_", "-"): name for name in MODULES}
    asked = word(args)
    app.registered_commands.clear()
    for verb, name in verbs.items():
        if verb == asked or asked not in verbs:
            module = import_module(f"patchkit.cli.{name}")
            app.command(verb, epilog=module.EXAMPLES)(module.run)


def word(args: Sequence[str]) -> str | None:
    """The first word of a command line that is no option: its verb, if it has one."""
    rest = iter(args)
    for arg in rest:
        if arg == "-C":
            next(rest, None)
        elif not arg.startswith("-"):
            return arg
    return None
