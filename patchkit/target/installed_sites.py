"""The folders of packages of an interpreter, asked of itself; nothing is imported from them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from patchkit.errors import EnvironmentFault, Finding, UsageFault, Where
from patchkit.target.dist_info import real_sites

_MARK = "patchkit-sys-path:"
# Without the folder it is started in: a json.py there is not the library's.
_PROGRAM = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; import json; "
    f"sys.stdout.write({_MARK!r} + json.dumps(sys.path) + chr(10))"
)
SECONDS = 60


def sites_of_folder(folder: str) -> tuple[str, ...]:
    """The one folder that a person named. Raises UsageFault(missing-target)."""
    found = real_sites([folder])
    if not found:
        raise UsageFault(
            Finding(
                "missing-target",
                f"there is no folder {folder}",
                Where(file=folder),
                expected="a folder of installed packages (site-packages or dist-packages)",
                found="a file" if os.path.lexists(folder) else "nothing",
                next="name the folder with --site, or the interpreter that has it with --python",
            )
        )
    return found


def sites_of_python(exe: str) -> tuple[str, ...]:
    """sys.path of the interpreter `exe` (a command or a path), links resolved.

    It is started in its usual way, so that user folders and .pth files count; the folder that it
    is started in does not. Raises UsageFault, EnvironmentFault.
    """
    import shutil
    import subprocess

    program = shutil.which(exe)
    if program is None:
        raise UsageFault.because(
            f"there is no interpreter {exe}",
            next="name another one with --python, or its folder of packages with --site",
        )
    try:
        run = subprocess.run(
            [program, "-B", "-c", _PROGRAM],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFault(_silent(exe, str(error))) from error
    line = next((r for r in run.stdout.splitlines() if r.startswith(_MARK)), None)
    if line is None:
        raise EnvironmentFault(_silent(exe, run.stderr.strip()[-300:] or f"exit {run.returncode}"))
    return real_sites(p for p in json.loads(line[len(_MARK) :]) if isinstance(p, str))


def own_sites() -> tuple[str, ...]:
    """sys.path of this interpreter: what a bundle patches."""
    return real_sites(path for path in sys.path if path)


def default_python(environment: Mapping[str, str]) -> str:
    """The interpreter that is meant where none is named: that of the active environment
    (VIRTUAL_ENV, CONDA_PREFIX), else python3 on PATH."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environment.get(name)
        if folder and os.path.isfile(os.path.join(folder, "bin", "python")):
            return os.path.join(folder, "bin", "python")
    import shutil

    return shutil.which("python3") or sys.executable


def _silent(exe: str, why: str) -> Finding:
    return Finding(
        "unsupported",
        f"{exe} does not tell its sys.path",
        expected="a Python interpreter that starts",
        found=why,
        next="name its folder of packages with --site instead",
    )
