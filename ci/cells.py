"""Runs cells of `patchkit matrix` on this machine: what the workflow runs, one after the other.

    python ci/cells.py list [--since REV]
    python ci/cells.py run [--since REV] [--out DIR] [CELL]...
    python ci/cells.py configure [--since REV] [--offline] [CELL]...

run: each cell is built twice, the second time in another folder and under another umask, and both
wheels must be the same. Cells that need a compiler are named and left out; `run CELL` with such a
cell says what this machine lacks. configure: those cells, with all their sources and their
environment, until CMake has written its build files; nothing is compiled. A cell that fails
does not stop the next; the exit code is 1 then. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Cell = dict[str, Any]


def cells(since: str | None) -> list[Cell]:
    """What `patchkit matrix` lists."""
    line = [sys.executable, "-m", "patchkit", "matrix", "--format", "json"]
    line += ["--affected-since", since] if since else []
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(done.returncode)
    found: list[Cell] = json.loads(done.stdout)["cells"]
    return found


def build(cell: Cell, out: Path, umask: int) -> dict[str, Any]:
    """Run the cell's command; what it printed as JSON. Raises SystemExit where it fails."""
    return command(cell, ["--out", str(out)], umask)


def command(cell: Cell, more: list[str], umask: int = 0o022) -> dict[str, Any]:
    """Run the cell's command with more options. Raises SystemExit where it fails, naming why."""
    program, *rest = shlex.split(cell["command"])
    assert program == "patchkit"
    line = [sys.executable, "-m", "patchkit", *rest, *more, "--json"]
    done = subprocess.run(
        line, cwd=ROOT, stdout=subprocess.PIPE, text=True, umask=umask, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    if done.returncode != 0:
        for finding in found.get("findings", []):
            print(f"  {finding['name']}: {finding['message']}", file=sys.stderr)
            for key in ("found", "next"):
                if finding.get(key):
                    print(f"    {key}: {finding[key]}", file=sys.stderr)
        raise SystemExit(f"{cell['id']}: failed, exit {done.returncode}")
    return found


def run(cell: Cell, out: Path) -> None:
    """Build a cell twice and keep the first wheel, with its provenance and SBOM, in `out`."""
    first = build(cell, out / cell["id"], 0o022)
    with tempfile.TemporaryDirectory(prefix="again-") as folder:
        second = build(cell, Path(folder) / "another" / "folder", 0o077)
    if first["sha256"] != second["sha256"]:
        raise SystemExit(f"{cell['id']}: {first['sha256']} first, then {second['sha256']}")
    print(f"{cell['id']}: {first['sha256']} twice, content {first['content']}", flush=True)


def configure(cell: Cell, offline: bool) -> None:
    """Run a compiling cell up to where it compiles."""
    found = command(cell, ["--configure-only", *(["--offline"] if offline else [])])
    print(f"{cell['id']}: {found['said']}, {found['count']} compile commands", flush=True)


def main() -> int:
    """The command; the exit code is returned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("list", "run", "configure"))
    parser.add_argument("ids", nargs="*", metavar="CELL")
    parser.add_argument("--since", metavar="REV")
    parser.add_argument("--offline", action="store_true", help="fetch nothing: name what is absent")
    parser.add_argument(
        "--out", type=Path, default=Path(os.environ.get("OUT", ROOT / "build" / "cells"))
    )
    asked = parser.parse_intermixed_args()
    found = cells(asked.since)
    known = {cell["id"]: cell for cell in found}
    if unknown := [name for name in asked.ids if name not in known]:
        raise SystemExit(f"no such cell: {', '.join(unknown)}")
    if asked.what == "configure":
        if bare := [name for name in asked.ids if known[name]["runnable"]]:
            raise SystemExit(f"{', '.join(bare)}: needs no compiler; run it")
        found = [cell for cell in found if not cell["runnable"]]
    failed = 0
    for cell in [known[name] for name in asked.ids] or found:
        try:
            one(cell, asked)
        except SystemExit as fault:
            # One cell says nothing of the next.
            print(fault.code, file=sys.stderr, flush=True)
            failed += 1
    return 1 if failed else 0


def one(cell: Cell, asked: argparse.Namespace) -> None:
    """What is asked, of one cell. Raises SystemExit where it fails."""
    if asked.what == "list":
        print(cell["id"], cell["command"], sep="\t")
    elif asked.what == "configure":
        configure(cell, asked.offline)
    elif cell["runnable"] or asked.ids:
        run(cell, asked.out)
    else:
        print(f"{cell['id']}: left out, it needs a machine that compiles")


if __name__ == "__main__":
    raise SystemExit(main())
