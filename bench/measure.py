"""What a command costs: the CPU seconds of its whole process tree, not the clock."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """cpu: user and system seconds of the process and of all children it waited for. wall:
    seconds. rss: the largest resident memory of any of them, MB."""

    cpu: float
    wall: float
    rss: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.wall + other.wall, max(self.rss, other.rss))


NOTHING = Cost(0.0, 0.0, 0.0)


class Failed(Exception):
    """A measured command did not exit with 0."""


def run(
    command: Sequence[str], at: Path, env: Mapping[str, str], stdin: Path | None = None
) -> tuple[Cost, str]:
    """Run one command to its end; its cost and its standard output. Raises Failed."""
    out, err = at.parent / f"{at.name}.out", at.parent / f"{at.name}.err"
    with (
        open(stdin or os.devnull, "rb") as source,
        open(out, "wb") as stdout,
        open(err, "wb") as stderr,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=at, env=dict(env), stdin=source, stdout=stdout, stderr=stderr
        )
        # wait4 gives the use of this child alone; getrusage would add up all that were before.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        words = err.read_text(errors="replace") or out.read_text(errors="replace")
        raise Failed(f"{' '.join(command)[:200]}: exit {process.returncode}\n{words[-2000:]}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024), out.read_text(
        errors="replace"
    )


def median(costs: Sequence[Cost]) -> Cost:
    """Part by part."""
    return Cost(
        statistics.median(c.cpu for c in costs),
        statistics.median(c.wall for c in costs),
        statistics.median(c.rss for c in costs),
    )


def machine() -> dict[str, object]:
    """What a reader needs to compare the figures with those of another machine."""
    model = platform.processor()
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = next((line.split()[1] for line in _lines("/proc/meminfo")), "0")
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": model,
        "cores": os.cpu_count() or 0,
        "memory_gb": round(int(memory) / 1e6, 1),
        "load": [round(x, 1) for x in os.getloadavg()],
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """First line of what each peer says of its version; "" where it is not installed."""
    asked = {
        "git": ("git", "--version"),
        "quilt": ("quilt", "--version"),
        "patch": ("patch", "--version"),
        "stg": ("stg", "--version"),
        "gbp": ("gbp", "--version"),
    }
    return {name: _first_line(command) for name, command in asked.items()}


def _first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).partition("\n")[0].strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
