"""Options that several verbs share, each spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

Pin = Annotated[
    str | None, typer.Option("--pin", metavar="PIN", help="The pinned release, as in pins.toml.")
]
Stack = Annotated[
    str | None,
    typer.Option("--stack", metavar="NAME", help="A stack of pins.toml. Without it: default."),
]
StackOrWhole = Annotated[
    str | None,
    typer.Option(
        "--stack", metavar="NAME", help="A stack of pins.toml. Without it: the whole series."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Use only what is cached; say what was not verified.")
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="sdist|git|DIR",
        help="Where the base comes from. Without it: as pins.toml says, else the verified sdist.",
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; say what would happen.")]
Date = Annotated[
    str | None,
    typer.Option(
        "--date", metavar="DATE", help="The day for Last-Update (2031-01-31); today without it."
    ),
]
Author = Annotated[
    str | None,
    typer.Option("--author", metavar='"NAME <MAIL>"', help="Without it: as git has it."),
]
Guard = Annotated[
    str | None,
    typer.Option(
        "--guard", metavar="NAME", help="Only stacks that turn NAME on have the patch. none: all."
    ),
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="PATCH", help="Behind this patch; at the end without it."),
]
First = Annotated[bool, typer.Option("--first", help="Before all other patches.")]
Accept = Annotated[
    list[str] | None,
    typer.Option("--accept", metavar="FILE:LINE", help="A place that settles an ambiguous hunk."),
]
EditTree = Annotated[
    str | None,
    typer.Option("--to", metavar="DIR", help="The work tree. Without it: build/edit-PIN."),
]

Installed = Annotated[
    bool, typer.Option("--installed", help="The installed package (site-packages), in place.")
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="EXE",
        help="With --installed: the interpreter that has the package. Without it: the active "
        "environment's, else python3.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="With --installed: leave out these files of the patches, as 'tests/*'.",
    ),
]
Site = Annotated[
    str | None,
    typer.Option("--site", metavar="DIR", help="With --installed: the site-packages folder."),
]
