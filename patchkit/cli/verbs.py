"""The list of verbs, in the order in which --help shows them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

VERBS = {
    "apply": "Apply a pin's series exactly, or loose patches.",
    "check": "Compare what the series gives with its lock; drift by name.",
    "lock": "Record what the series gives in series.lock.",
    "list_": "List patches, their guards, proofs and switches.",
    "show": "Show a patch: its header and its diff.",
    "prove": "Run the proofs: red before the patch, green after it.",
    "drift": "Tell what would become of each patch on other releases.",
    "blame": "Find the upstream change that broke a patch.",
    "diff": "Compare two series patch by patch.",
    "rebase": "Carry a series to another release.",
    "graph": "Say which patch needs which, and which commute.",
    "export": "Take the series out: for quilt, for git am, as one diff.",
    "report": "Write pages to look at in a browser.",
    "fetch": "Get and verify a pin's source; then --offline works.",
    "pin": "Pin a release; complete a pin's commit id.",
    "doctor": "Say what is wrong with this machine or project.",
    "build": "Build a wheel with the patches in it.",
    "matrix": "List the wheels that there are to build.",
    "revert": "Take patches back, byte for byte.",
    "bundle": "Write one file that patches an image without patchkit.",
    "new": "Begin a patch in a work tree.",
    "edit": "Open a patch in a work tree.",
    "refresh": "Take the work tree's changes into the patch.",
    "import_": "Bring in diffs, mails, quilt folders, PRs, forks, scripts.",
    "lint": "Find what other tools would read differently.",
    "rename": "Give a patch another name.",
    "move": "Put a patch at another place in the order.",
    "drop": "Remove patches.",
    "init": "Begin a project.",
    "cache": "Show or clear the cache.",
}
"""Modules of this package, each with its line of --help: short, as a terminal cuts longer ones."""


def register(app: typer.Typer, args: Sequence[str]) -> None:
    """Add the verb that `args` ask for to `app`; all of them where they ask for none (--help), or
    for none that there is. A verb's module is `patchkit.cli.NAME`, its function `run`.

    Loading all of them takes as long as loading typer.
    """
    verbs = {name.rstrip("_").replace("_", "-"): name for name in VERBS}
    asked = word(args)
    app.registered_commands.clear()
    for verb, name in verbs.items():
        if verb == asked or asked not in verbs:
            module = import_module(f"patchkit.cli.{name}")
            app.command(verb, epilog=module.EXAMPLES, short_help=VERBS[name])(module.run)


def word(args: Sequence[str]) -> str | None:
    """The first word of a command line that is no option: its verb, if it has one."""
    rest = iter(args)
    for arg in rest:
        if arg == "-C":
            next(rest, None)
        elif not arg.startswith("-"):
            return arg
    return None
