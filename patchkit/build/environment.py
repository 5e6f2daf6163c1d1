"""The environment that builds run in: made once from a list in which every package has its hash.

The list holds only pure Python packages, so it is one for every architecture and Python.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from patchkit.build.scratch import BUILD
from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.growing import remove_folder
from patchkit.files.lock import locked
from patchkit.source.base import Progress, silent

LIST = Path(__file__).parent / "build-env.txt"
READY = ".patchkit-ready"
"""Written last: an environment without it was not finished."""
_PIP = (
    *("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile"),
    *("--require-hashes", "--only-binary=:all:"),
)


@dataclass(frozen=True)
class Environment:
    """bin: its folder of programs. sha256: of the list. python: the interpreter's tag (cp311)."""

    bin: str
    sha256: str
    python: str


def ready(cache: str, progress: Progress = silent) -> Environment:
    """The environment, below the folder `cache`; made where it is not there yet.

    Needs a network the first time. Raises EnvironmentFault(network, disk).
    """
    digest = hashlib.sha256(read_file(LIST)).hexdigest()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    at = os.path.join(cache, BUILD, f"env-{tag}-{digest[:16]}")
    mark = os.path.join(at, READY)
    if not os.path.exists(mark):
        make_folder(os.path.dirname(at))
        with locked(f"{at}.lock", wait=600):
            if not os.path.exists(mark):
                progress("making the build environment", 0)
                _make(at)
                write_file(mark, b"")
    return Environment(os.path.join(at, "bin"), digest, tag)


def _make(at: str) -> None:
    # A virtual environment holds its own path, so it is made in place.
    remove_folder(at)
    try:
        _run([sys.executable, "-m", "venv", at])
        python = os.path.join(at, "bin", "python")
        _run([python, "-m", "pip", "install", *_PIP, "-r", str(LIST)])
    except BaseException:
        remove_folder(at)
        raise


def _run(line: list[str]) -> None:
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(
            Finding(
                "network",
                "the build environment could not be made",
                expected="every package of patchkit/build/build-env.txt, by its hash",
                found=(done.stderr or done.stdout).strip()[-600:],
                next="mend the cause and run the command again",
            )
        )
