"""The environments that builds run in: made once from a list in which every package has its hash.

The list of an empty build holds only pure Python packages, so it is one for every architecture and
Python. Those of compiled builds hold torch, and for CUDA the toolkit: one a device and torch.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from patchkit.build import toolkit
from patchkit.build.scratch import BUILD
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.growing import remove_folder
from patchkit.files.lock import locked
from patchkit.source.base import Progress, silent

LIST = Path(__file__).parent / "build-env.txt"
_ROW = re.compile(r"(?m)^([A-Za-z0-9._-]+)==(\S+)")
READY = ".patchkit-ready"
"""Written last: an environment without it was not finished."""
_PIP = (
    *("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile"),
    *("--require-hashes", "--only-binary=:all:"),
)


@dataclass(frozen=True)
class Environment:
    """bin: its folder of programs. sha256: of the list. python: the interpreter's tag (cp311).
    listing: the list's file name. cuda_home: the toolkit that it holds, "" for none."""

    bin: str
    sha256: str
    python: str
    listing: str = LIST.name
    cuda_home: str = ""

    @property
    def interpreter(self) -> str:
        """Its interpreter."""
        return os.path.join(self.bin, "python")


def list_for(device: str, torch: str) -> Path | None:
    """The list of a compiled build for `device` with that torch; None where there is none."""
    found = LIST.parent / f"env-{device}-torch{torch}.txt"
    return found if found.is_file() else None


def listed(listing: Path) -> dict[str, str]:
    """Package -> its release, as a list has them."""
    return dict(_ROW.findall(read_file(listing).decode("ascii")))


def place(folder: str, listing: Path = LIST) -> Environment:
    """The environment of a list below `folder`, whether or not it is made yet."""
    digest = hashlib.sha256(read_file(listing)).hexdigest()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    at = os.path.join(folder, f"env-{tag}-{digest[:16]}")
    release = next((r for n, r in listed(listing).items() if n == "nvidia-cuda-nvcc"), "")
    home = toolkit.home(at, release) if release else ""
    return Environment(os.path.join(at, "bin"), digest, tag, listing.name, home)


def ready(cache: str, progress: Progress = silent) -> Environment:
    """The environment of an empty build, below the folder `cache`."""
    return made(os.path.join(cache, BUILD), LIST, progress)


def made(
    folder: str, listing: Path, progress: Progress = silent, *, offline: bool = False
) -> Environment:
    """The environment of a list, below `folder`; made where it is not there yet.

    Needs a network the first time. Raises EnvironmentFault(network, disk).
    """
    found = place(folder, listing)
    at = os.path.dirname(found.bin)
    mark = os.path.join(at, READY)
    if not os.path.exists(mark):
        if offline:
            raise EnvironmentFault(absent(listing))
        make_folder(folder)
        with locked(f"{at}.lock", wait=3600):
            if not os.path.exists(mark):
                progress(f"making the environment of {listing.name}", 0)
                _make(at, listing)
                if found.cuda_home:
                    toolkit.complete(found.cuda_home)
                write_file(mark, b"")
    return found


def is_made(folder: str, listing: Path) -> bool:
    """Whether the environment of a list is there, whole."""
    return os.path.exists(os.path.join(os.path.dirname(place(folder, listing).bin), READY))


def absent(listing: Path) -> Finding:
    """That the environment of a list is not there, and may not be fetched."""
    return Finding(
        "network",
        "the build environment is not made yet: that takes a network",
        Where(file=f"patchkit/build/{listing.name}"),
        expected="every package of the list, by its hash",
        next="run the command once without --offline",
    )


def _make(at: str, listing: Path) -> None:
    # A virtual environment holds its own path, so it is made in place.
    remove_folder(at)
    try:
        _run([sys.executable, "-m", "venv", at], listing)
        python = os.path.join(at, "bin", "python")
        _run([python, "-m", "pip", "install", *_PIP, "-r", str(listing)], listing)
    except BaseException:
        remove_folder(at)
        raise


def _run(line: list[str], listing: Path) -> None:
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(
            Finding(
                "network",
                "the build environment could not be made",
                Where(file=f"patchkit/build/{listing.name}"),
                expected="every package of the list, by its hash",
                found=(done.stderr or done.stdout).strip()[-600:],
                next="mend the cause and run the command again",
            )
        )
