"""What a machine has for compiling: asked of its programs, nothing guessed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from patchkit.build.basewheel import machine as architecture

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """cores, memory (GiB, available now), disk (GiB free where a build stands). versions: program
    or package -> its version; what is not there is left out. cuda_home: the toolkit's folder.
    toolchains: Rust toolchains that are installed. headers: those of the asked ones that exist.
    arch: as wheels name it, "" where it was not asked."""

    cores: int
    memory: float
    disk: float
    versions: Mapping[str, str] = field(default_factory=dict)
    cuda_home: str = ""
    toolchains: tuple[str, ...] = ()
    headers: frozenset[str] = frozenset()
    arch: str = ""


def jobs(cores: int, memory: float, each: int) -> int:
    """MAX_JOBS: one a core, as far as memory goes at `each` GiB a job, and at least one."""
    return max(1, min(cores, int(memory // each)))


def number(version: str) -> tuple[int, int, int]:
    """The first three numbers of a version; zeros where it has none."""
    found = _VERSION.search(version)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def look(at: str, python: str | None) -> Machine:
    """Ask this machine. at: where a build would stand. python: the interpreter that would build
    (None: none is named)."""
    home = os.environ.get("CUDA_HOME") or (
        "/usr/local/cuda" if os.path.isdir("/usr/local/cuda") else ""
    )
    versions: dict[str, str] = {}
    asked = {
        "g++": ("g++", "-dumpfullversion"),
        "cmake": ("cmake", "--version"),
        "ninja": ("ninja", "--version"),
        "cargo": ("cargo", "--version"),
        "nvcc": (os.path.join(home, "bin", "nvcc") if home else "nvcc", "--version"),
        "driver": ("nvidia-smi", ""),
    }
    for name, (program, option) in asked.items():
        said = _said([program, *([option] if option else [])])
        # nvcc and nvidia-smi print other numbers before the one that is meant.
        mark = {"nvcc": "release ", "driver": "CUDA Version: "}.get(name, "")
        found = _VERSION.search(said[said.find(mark) + len(mark) :]) if mark in said else None
        if found:
            versions[name] = found[0]
    versions.update(_packages(python))
    rust = _said(["rustup", "toolchain", "list"]).splitlines()
    numa = "/usr/include/numa.h"
    return Machine(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        _memory(),
        _disk(at),
        versions,
        home,
        tuple(line.split()[0] for line in rust if line.strip() and "no installed" not in line),
        frozenset(h for h in (numa,) if os.path.exists(h)),
        architecture(),
    )


def _said(line: list[str]) -> str:
    """What a program prints; "" where it is not there or fails."""
    if shutil.which(line[0]) is None:
        return ""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _packages(python: str | None) -> dict[str, str]:
    if python is None:
        return {}
    names = (
        "torch",
        "packaging",
        "setuptools",
        "setuptools-scm",
        "setuptools-rust",
        "wheel",
        "jinja2",
        "pip",
    )
    code = (
        "import importlib.metadata as m, sys\n"
        "print('python', sys.version.split()[0])\n"
        f"for n in {names!r}:\n"
        "    try: print(n, m.version(n))\n"
        "    except m.PackageNotFoundError: pass\n"
        "try:\n"
        "    import torch\n"
        "    print('torch-cuda', torch.version.cuda or 'none')\n"
        "except Exception: pass\n"
    )
    rows = (line.split() for line in _said([python, "-I", "-c", code]).splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _memory() -> float:
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            rows = dict(line.split(":", 1) for line in stream)
        return int(rows["MemAvailable"].split()[0]) / (1 << 20)
    except (OSError, KeyError, ValueError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB


def _disk(at: str) -> float:
    while not os.path.isdir(at):
        at = os.path.dirname(at)
    return shutil.disk_usage(at).free / GIB
