"""What a killed process left under a name that holds its number: NAME.PID.pk-tmp and the like."""

from __future__ import annotations

import contextlib
import os


def abandoned(path: str, end: str, between: str = ".", *, running: bool = False) -> list[str]:
    """Paths of the form `path`, `between`, a process id, `end`, sorted. running: also those of
    processes that run; without it only of those that do not."""
    folder, name = os.path.split(path)
    try:
        found = os.listdir(folder or ".")
    except OSError:
        return []
    lead = name + between
    whole = [one for one in found if one.startswith(lead) and one.endswith(end)]
    return [
        os.path.join(folder, one)
        for one in sorted(whole)
        if (number := one[len(lead) : len(one) - len(end)]).isdecimal()
        and number.isascii()
        and (running or not _runs(int(number)))
    ]


def sweep(path: str, end: str) -> None:
    """Remove the files `path`.PID`end` of processes that run no more. Litter does no harm: what
    cannot be removed stays."""
    for left in abandoned(path, end):
        with contextlib.suppress(OSError):
            os.unlink(left)


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return number > 0
