"""CMake's configuration alone: the build script runs as in a build, and stops where it compiles.

So the arguments, the environment and the sources are those of the build itself. The script calls
`cmake` by name; what stands first on its PATH passes every call on but `--build`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.upstreams.building import CONFIGURED

DONE = "Configuring done"
COMMANDS = "compile_commands.json"
LOG = "configure.log"
_STOPPED = "stopped-at-build"
_LONGEST = 3600.0
_SHOWN = 25
_WRAPPER = """#!/bin/sh
for word in "$@"; do
  if [ "$word" = --build ]; then : > {mark}; exit 75; fi
done
exec {cmake} "$@"
"""


@dataclass(frozen=True)
class Configured:
    """at: the build folder. said: CMake's line. commands: path of compile_commands.json, and how
    many it has. seconds: what it took. tree: id of the patched tree."""

    at: str
    said: str
    commands: str
    count: int
    seconds: float
    tree: str = ""
    device: str = ""
    findings: tuple[Finding, ...] = ()


def run(line: Sequence[str], variables: Mapping[str, str], tree: str, at: str) -> Configured:
    """Run the build script up to where it compiles.

    Raises EnvironmentFault(unsupported) where there is no cmake, Refused(unsupported) with CMake's
    last words where it does not get there.
    """
    cmake = shutil.which("cmake", path=variables["PATH"])
    if cmake is None:
        raise EnvironmentFault(
            Finding("unsupported", "there is no cmake on PATH", next="--python EXE, or install it")
        )
    stop, mark = os.path.join(at, "stop"), os.path.join(at, _STOPPED)
    make_folder(stop)
    text = _WRAPPER.format(mark=shlex.quote(mark), cmake=shlex.quote(cmake))
    write_file(os.path.join(stop, "cmake"), text.encode(), 0o755)
    env = {
        **variables,
        "PATH": f"{stop}{os.pathsep}{variables['PATH']}",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
    }
    began = time.monotonic()
    said = _run(line, env, tree)
    seconds = time.monotonic() - began
    write_file(os.path.join(at, LOG), said.encode("utf-8", "replace"))
    done = re.search(rf"(?m)^.*{DONE}.*$", said)
    if done is None or not os.path.exists(mark):
        raise Refused(
            Finding(
                "unsupported",
                "CMake could not configure the patched tree",
                Where(file=os.path.join(at, LOG)),
                expected=f"{DONE}, and build files",
                found="it stopped before" if done is None else f"{DONE}, but no build files",
                next="mend what its message names",
                details=tuple(_telling(said)),
            )
        )
    found = _commands(tree)
    count = len(json.loads(read_file(found, 1 << 30))) if found else 0
    return Configured(at, done[0].strip(), found, count, seconds)


def _run(line: Sequence[str], env: Mapping[str, str], tree: str) -> str:
    try:
        return subprocess.run(
            line,
            cwd=tree,
            env=dict(env),
            umask=0o022,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LONGEST,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            Finding("unsupported", f"configuring took longer than {_LONGEST:.0f} s")
        ) from None
    except OSError as error:
        raise EnvironmentFault(
            Finding("unsupported", f"{line[0]} cannot be started: {error.strerror}")
        ) from None


def _telling(said: str) -> list[str]:
    """The error that CMake names, else its last lines."""
    lines = said.strip().splitlines()
    first = next((i for i, row in enumerate(lines) if row.startswith("CMake Error")), None)
    return lines[first : first + _SHOWN] if first is not None else lines[-_SHOWN:]


def _commands(tree: str) -> str:
    """The compile_commands.json of the build folder below the tree, "" for none."""
    for folder, _, names in os.walk(os.path.join(tree, "build")):
        if COMMANDS in names:
            return os.path.join(folder, COMMANDS)
    return ""


def remember(at: str, made: Configured) -> None:
    """Write down what the build folder is configured for."""
    facts = {"tree": made.tree, "device": made.device, "commands": made.commands}
    write_file(os.path.join(at, CONFIGURED), (json.dumps(facts, sort_keys=True) + "\n").encode())
