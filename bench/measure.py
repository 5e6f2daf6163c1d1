"""What a command costs: the CPU seconds of its whole process tree, not the clock."""

from __future__ import annotations

import functools
import json
import os
import platform
import statistics
import subprocess
import sys
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
    asked = {
        "command": list(command),
        "cwd": str(at),
        "env": dict(env),
        "stdin": str(stdin or os.devnull),
        "stdout": str(out),
        "stderr": str(err),
    }
    status, cpu, wall, rss = _launcher().ask(asked)
    if status != 0:
        words = err.read_text(errors="replace") or out.read_text(errors="replace")
        raise Failed(f"{' '.join(command)[:200]}: exit {status:g}\n{words[-2000:]}")
    return Cost(cpu, wall, rss), out.read_text(errors="replace")


class _Launcher:
    """The process of `launch.py`; it ends when this one closes the pipe, or ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Mapping[str, object]) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: list[float] = json.loads(self._process.stdout.readline())
        return answer


@functools.cache
def _launcher() -> _Launcher:
    return _Launcher()


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
        "system": f"{platform.system()} {platform.machine()}",
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
