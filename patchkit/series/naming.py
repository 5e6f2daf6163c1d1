"""A patch as a person names it: with its ending or without."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.errors import Finding, UsageFault, Where

SHOWN = 20
"""Names of a series that a refusal lists where none is near."""


def spelled(names: Sequence[str], name: str) -> str | None:
    """The one of `names` that is meant, .patch or .diff left out or not; None without."""
    return next((n for n in (name, f"{name}.patch", f"{name}.diff") if n in names), None)


def named(names: Sequence[str], name: str, of: str = "the series") -> str:
    """As `spelled`. Raises UsageFault(missing-patch) that lists the nearest. of: whose patches
    the names are, for the message."""
    found = spelled(names, name)
    if found is not None:
        return found
    import difflib

    near = difflib.get_close_matches(name, names, 3)
    raise UsageFault(
        Finding(
            "missing-patch",
            f"{name} is not among the patches of {of}",
            Where(patch=name),
            expected="one of " + (", ".join(near or names[:SHOWN]) or "no patch: there is none"),
            found=name,
            next="patchkit list",
        )
    )
