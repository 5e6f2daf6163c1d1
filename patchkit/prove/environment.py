"""The interpreter that proofs run in: made once from a hash-pinned list, or the user's own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.growing import remove_folder
from patchkit.files.lock import locked
from patchkit.source import Progress, silent

LISTS = (Path(__file__).parent / "cpu-torch.txt", Path(__file__).parent / "cpu.txt")
LINT = (Path(__file__).parent / "lint.txt",)
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
READY = ".patchkit-ready"
"""Written last: an environment without it was not finished."""
PYTHON = (3, 11)
"""The CPython that the list's wheels are for."""


@dataclass(frozen=True)
class Environment:
    """python: the interpreter. digest: what results are kept under. made: by us, or given."""

    python: str
    digest: str
    made: bool

    @property
    def short(self) -> str:
        """A short id, for folder names."""
        return self.digest[:16]


_ASK = """
import sys, json, importlib.metadata as m, importlib.util as u, platform
d = sorted({(x.metadata['Name'] or '').lower() + '==' + x.version for x in m.distributions()})
print(json.dumps([sys.version, platform.machine(), d]))
lacks = [n for n in sys.argv[2:] if u.find_spec(n) is None]
if sys.argv[1] == "gpu" and "torch" not in lacks:
    import torch
    lacks += [] if torch.cuda.is_available() else ["a GPU that torch can use"]
print(json.dumps(lacks))
"""


def given(python: str, modules: Iterable[str] = (), *, gpu: bool = False) -> Environment:
    """An interpreter as it is: nothing is installed. modules: what has to be importable, beside
    pytest. gpu: its torch has to see a GPU. Raises EnvironmentFault that names what is missing."""
    wanted = sorted({"pytest", *modules, *(["torch"] if gpu else [])})
    line = [python, "-c", _ASK, "gpu" if gpu else "cpu", *wanted]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        said = done.stderr.strip()[-300:]
    except OSError as error:
        done, said = None, str(error)
    if done is None or done.returncode != 0:
        raise EnvironmentFault(
            Finding(
                "unsupported",
                f"{python} does not run",
                expected="a Python interpreter",
                found=said,
                next="name another with --python",
            )
        )
    facts, lacks = done.stdout.splitlines()[-2:]
    missing = json.loads(lacks)
    if missing:
        raise EnvironmentFault(
            Finding(
                "unsupported",
                f"{python} lacks {', '.join(missing)}",
                expected=f"an interpreter with {', '.join(wanted)}"
                + (", and a GPU" if gpu else ""),
                found=f"Python {json.loads(facts)[0].split()[0]}",
                next="name another with --python"
                + (", or --gpu --export DIR for another machine" if gpu else ", or leave it out"),
            )
        )
    return Environment(python, hashlib.sha256(f"{facts}\n".encode()).hexdigest(), False)


def digest_of_list(lists: Sequence[Path] = LISTS) -> str:
    """Digest of the hash-pinned lists: the environment's identity."""
    return hashlib.sha256(b"".join(read_file(path) for path in lists)).hexdigest()


def ready(cache: str, progress: Progress = silent, lists: Sequence[Path] = LISTS) -> Environment:
    """The environment of the lists, below the folder `cache`; made where it is not there yet.

    Takes minutes and a network the first time. Raises EnvironmentFault.
    """
    digest = digest_of_list(lists)
    at = os.path.join(cache, "environments", digest[:16])
    python = os.path.join(at, "bin", "python")
    mark = os.path.join(at, READY)
    if not os.path.exists(mark):
        make_folder(os.path.dirname(at))
        with locked(f"{at}.lock", wait=3600):
            if not os.path.exists(mark):
                _make(at, progress, lists)
                write_file(mark, b"")
    return Environment(python, digest, True)


def _make(at: str, progress: Progress, lists: Sequence[Path]) -> None:
    # A virtual environment holds its own path, so it is made in place.
    remove_folder(at)
    try:
        progress("making the proofs' environment", 0)
        _run([_interpreter(), "-m", "venv", at], "venv")
        pip = [os.path.join(at, "bin", "python"), "-m", "pip", "install", *_PIP, "-r"]
        for path in map(str, lists):
            # The CPU build of torch is on torch's own index; a mirror in the user's pip
            # configuration may have it too. The digest says that it is the one.
            own = [*pip, path, "--index-url", TORCH_INDEX, "--retries", "0", "--timeout", "20"]
            is_torch = path == str(LISTS[0])
            if is_torch and subprocess.run(own, capture_output=True, check=False).returncode == 0:
                continue
            _run([*pip, path], f"pip install -r {os.path.basename(path)}")
    except BaseException:
        remove_folder(at)
        raise


_PIP = (
    *("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"),
    *("--require-hashes", "--only-binary=:all:"),
)


def _interpreter() -> str:
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    name = f"python{PYTHON[0]}.{PYTHON[1]}"
    found = shutil.which(name)
    if found is None:
        raise EnvironmentFault(
            Finding(
                "unsupported",
                f"proofs on CPU need {name}: the pinned wheels are for it",
                expected=f"{name} on PATH",
                found=f"Python {sys.version.split()[0]}",
                next="install it, or name an interpreter that has torch with --python EXE",
            )
        )
    return found


def _run(line: list[str], what: str) -> None:
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentFault(
            Finding(
                "network",
                f"the proofs' environment could not be made: {what} failed",
                found=(done.stderr or done.stdout).strip()[-600:],
                next="mend the cause and run the command again, or use --python EXE",
            )
        )


__all__ = ["Environment", "digest_of_list", "given", "ready"]
