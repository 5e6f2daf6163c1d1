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
