"""The list of verbs, in the order in which --help shows them."""

from __future__ import annotations

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
    "rebase",
    "graph",
    "export",
    "fetch",
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


def register(app: typer.Typer) -> None:
    """Add every verb to `app`. A verb's module is `patchkit.cli.NAME`, its function `run`."""
    for name in MODULES:
        module = import_module(f"patchkit.cli.{name}")
        app.command(name.rstrip("_").replace("_", "-"), epilog=module.EXAMPLES)(module.run)
