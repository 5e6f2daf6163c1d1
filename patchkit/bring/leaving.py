"""`--exclude GLOB`: files of a change that are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from patchkit.engine.model import File
from patchkit.errors import Finding, Refused

Changes = dict[str, File | None]


def without(
    changes: Mapping[str, File | None], globs: Sequence[str], where: str
) -> tuple[Changes, tuple[str, ...]]:
    """The changes less what a glob matches (`*` also matches a slash), and what was left out.

    Raises Refused: usage for a glob that matches nothing, no-op where nothing is left.
    """
    for glob in globs:
        if not any(fnmatchcase(path, glob) for path in changes):
            raise Refused(
                Finding(
                    "usage",
                    f"--exclude {glob} matches no file of {where}",
                    expected="a pattern of " + ", ".join(sorted(changes)[:6]),
                    found=glob,
                    next="leave the option out, or mend the pattern",
                )
            )
    gone = tuple(sorted(path for path in changes if any(fnmatchcase(path, glob) for glob in globs)))
    left = {path: file for path, file in changes.items() if path not in gone}
    if not left:
        raise Refused(
            Finding(
                "no-op",
                f"{where} changes nothing" + (" that is not left out" if gone else ""),
                expected="at least one changed file",
                found=f"{len(gone)} file(s), all left out" if gone else "none",
                next="look at what the address names" if not gone else "fewer --exclude",
            )
        )
    return left, gone
