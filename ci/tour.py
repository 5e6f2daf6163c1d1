"""Run the README's tour in a clone and hold its output against the README.

Each fenced `console` block is a list of commands (`$ …`) and what they print. Commands whose
output is not shown are run too. `python ci/tour.py` says what differs and exits 1;
`python ci/tour.py --write` puts the real output in. Blocks that begin with `# not run` are left.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def run_block(text: str, at: Path) -> str:
    """The block with what its commands really print."""
    if text.startswith("# not run"):
        return text
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            command = line[2:].partition("  #")[0]
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=at,
                env={**os.environ, "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            out.append(line)
            out += done.stdout.rstrip("\n").splitlines()
    return "\n".join(out) + "\n"


def main() -> int:
    """Compare or write; the exit code is returned."""
    old = README.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch) / "patchkit"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(at)], check=True)
        new = BLOCK.sub(lambda m: f"```console\n{run_block(m[1], at)}```", old)
        new = new.replace(str(at), ".")
    if new == old:
        print("README.md: the tour prints what it says")
        return 0
    if "--write" in sys.argv:
        README.write_text(new)
        print("README.md: written anew")
        return 0
    import difflib

    sys.stdout.writelines(
        difflib.unified_diff(old.splitlines(True), new.splitlines(True), "README.md", "real")
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
