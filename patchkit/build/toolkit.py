"""The CUDA toolkit out of the packages of an environment: each by its hash, none of the machine's.

The packages lie in one tree, but with what running needs alone: a compiler also looks for `lib64`,
for libraries without a number, and for the driver's library, which is the machine's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from patchkit.engine.model import SYMLINK, File
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.atomic import make_folder
from patchkit.files.root import Root

_LIBRARY = re.compile(r"(lib.+\.so)\.[0-9.]+")
STUBS = "lib/stubs"


def home(environment: str, release: str) -> str:
    """Where the toolkit of a release (13.0.88) stands in an environment."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = os.path.join(environment, "lib", python, "site-packages")
    return os.path.join(site, "nvidia", f"cu{release.partition('.')[0]}")


def complete(at: str) -> None:
    """Add to the toolkit `at` what its packages leave out. Raises EnvironmentFault(unsupported)."""
    root = Root(at)
    folder = os.path.join(at, "lib")
    names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    if not names or not os.path.isfile(os.path.join(at, "bin", "nvcc")):
        raise EnvironmentFault(
            Finding(
                "unsupported",
                "the CUDA packages do not lie where they are expected",
                Where(file=at),
                expected="bin/nvcc and lib/",
                found=", ".join(sorted(os.listdir(at))) if os.path.isdir(at) else "no such folder",
                next="give an interpreter and CUDA_HOME of your own: --python EXE",
            )
        )
    root.put("lib64", File(b"lib", SYMLINK), sync=False)
    for name in sorted(names):
        found = _LIBRARY.fullmatch(name)
        if found and found[1] not in names:
            root.put(f"lib/{found[1]}", File(name.encode(), SYMLINK), sync=False)
    _driver(at)


def _driver(at: str) -> None:
    """A library with the driver's name and nothing in it: what is linked with it asks the machine
    that runs it for the real one."""
    make_folder(os.path.join(at, STUBS))
    target = os.path.join(at, STUBS, "libcuda.so")
    line = ["gcc", "-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-o", target]
    line += ["-x", "c", os.devnull]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        said = done.stderr.strip()[-300:] if done.returncode else ""
    except OSError as error:
        said = str(error.strerror)
    if said:
        raise EnvironmentFault(
            Finding(
                "unsupported",
                "a library could not be linked",
                expected="gcc on PATH",
                found=said,
                next="install gcc and binutils",
            )
        )
