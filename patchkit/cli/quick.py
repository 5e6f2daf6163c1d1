"""`patchkit check --installed` without the command line's libraries.

An entry point runs it before every start, and loading typer takes longer than all of the checking.
Whatever is not exactly that command, its --help and its mistakes too, is left to typer.
"""

from __future__ import annotations

from collections.abc import Sequence

_VALUES = ("-C", "--pin", "--stack", "--python", "--site", "--exclude")


def quick(args: Sequence[str]) -> int | None:
    """Run the command where it is that one; its exit code, or None. Raises as the verbs do."""
    given: dict[str, str] = {}
    flags: set[str] = set()
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.partition("=")
        if name in _VALUES:
            value = value if equals else next(rest, "")
            if not value or name in given or (name == "-C") != ("check" not in flags):
                return None
            given[name] = value
        elif arg in ("check", "--installed", "--json") and arg not in flags:
            flags.add(arg)
        else:
            return None
    if not {"check", "--installed"} <= flags:
        return None
    from patchkit.cli.apply_installed import Asked
    from patchkit.cli.check_installed import check_installed
    from patchkit.cli.out import Out

    as_json = "--json" in flags
    asked = Asked(
        given.get("-C", "."),
        given.get("--python"),
        given.get("--site"),
        (given["--pin"],) if "--pin" in given else (),
        given.get("--stack"),
        exclude=(given["--exclude"],) if "--exclude" in given else (),
        as_json=as_json,
    )
    return check_installed(Out("check", as_json=as_json), asked)
