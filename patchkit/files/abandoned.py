"""Names of unfinished files and folders, and what a killed process left under such a name.

NAME.PID-HOME.pk-tmp and the like. A process sees only those of its own home: another container on
the same folder has the same numbers for other processes. What comes from another home is left
alone for a day.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from functools import lru_cache

_DAY = 86_400
_HOME = 8
"""Characters."""


def unfinished(path: str, end: str, between: str = ".") -> str:
    """The name under which this process, and no other, makes what will be `path`."""
    return f"{path}{between}{os.getpid()}-{_home()}{end}"


def abandoned(path: str, end: str, between: str = ".", *, running: bool = False) -> list[str]:
    """Paths that `unfinished` gave to processes that run no more, sorted. running: those of
    processes that run, too, and of every home."""
    folder, name = os.path.split(path)
    try:
        found = os.listdir(folder or ".")
    except OSError:
        return []
    lead = name + between
    whole = [one for one in found if one.startswith(lead) and one.endswith(end)]
    named = [(one, _whose(one[len(lead) : len(one) - len(end)])) for one in sorted(whole)]
    paths = [(os.path.join(folder, one), whose) for one, whose in named if whose is not None]
    return [at for at, whose in paths if running or _dead(at, *whose)]


def sweep(path: str, end: str) -> None:
    """Remove the files that `abandoned` names. Litter does no harm: what cannot be removed
    stays."""
    for left in abandoned(path, end):
        with contextlib.suppress(OSError):
            os.unlink(left)


def untouched(path: str) -> bool:
    """Whether nothing was written to the file, or put into the folder, for a day."""
    try:
        return time.time() - os.lstat(path).st_mtime > _DAY
    except OSError:
        return False


def _dead(path: str, number: int, home: str) -> bool:
    return not _runs(number) if home == _home() else untouched(path)


def _whose(text: str) -> tuple[int, str] | None:
    """Process and home; a number alone is what earlier releases wrote, of no home that is known."""
    number, _, home = text.partition("-")
    if not (number.isascii() and number.isdecimal()):
        return None
    if home and (len(home) != _HOME or set(home) - set("0123456789abcdef")):
        return None
    return int(number), home


@lru_cache(maxsize=1)
def _home() -> str:
    """Within what the numbers of processes hold: this machine, since it started, this container."""
    parts = [os.uname().nodename]
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        parts.append(file.read())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_HOME]


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return number > 0
