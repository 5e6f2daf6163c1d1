"""The options of a command line as they were typed, for the commands that messages name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def given(context: typer.Context, leave: Collection[str] = ("as_json", "check")) -> tuple[str, ...]:
    """Every option that was typed, with its value. leave: parameters that are left out."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name
        if name is None or name in leave or parameter.param_type_name != "option":
            continue
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words.append(parameter.opts[0])
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [parameter.opts[0], str(each)]
    return tuple(words)
