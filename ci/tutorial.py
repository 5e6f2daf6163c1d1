"""Run docs/tutorial.md from an empty folder and hold its output against the page.

Each fenced `console` block is a list of commands (`$ …`) and what they print; all blocks are one
session of one shell. `python ci/tutorial.py` says what differs and exits 1; `--write` puts the
real output in.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
MARK = "\x01"


def commands(page: str) -> list[str]:
    """Every command of the page, in order."""
    return [
        line[2:]
        for block in BLOCK.findall(page)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def outputs(wanted: list[str], at: Path) -> list[str]:
    """What each command prints, run one after the other in one shell."""
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(at / "home"),
        "PATCHKIT_CACHE": str(at / "cache"),
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "GIT_AUTHOR_NAME": "A. Newcomer",
        "GIT_AUTHOR_EMAIL": "newcomer@example.org",
        "GIT_COMMITTER_NAME": "A. Newcomer",
        "GIT_COMMITTER_EMAIL": "newcomer@example.org",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for folder in ("home", "empty"):
        (at / folder).mkdir()
    script = "".join(f"{command}\nprintf '{MARK}'\n" for command in wanted)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=at / "empty",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout.split(MARK)[:-1]


def told(page: str) -> str:
    """The page with what its commands really print."""
    wanted = commands(page)
    with tempfile.TemporaryDirectory() as scratch:
        said = iter(outputs(wanted, Path(scratch)))

        def block(match: re.Match[str]) -> str:
            lines = []
            for line in match[1].splitlines():
                if line.startswith("$ "):
                    lines.append(line)
                    lines += [out.rstrip() for out in next(said).rstrip("\n").splitlines()]
            return "```console\n" + "\n".join(lines) + "\n```"

        return BLOCK.sub(block, page)


def main() -> int:
    """Compare or write; the exit code is returned."""
    old = PAGE.read_text()
    new = re.sub(r"\d{4}-\d\d-\d\d", "2031-01-31", told(old))
    new = re.sub(r"Date: .*", "Date: Fri, 31 Jan 2031 12:00:00 +0000", new)
    new = re.sub(r"Sha256: .*", "Sha256: …", new)
    if new == old:
        print("docs/tutorial.md: every command prints what it says")
        return 0
    if "--write" in sys.argv:
        PAGE.write_text(new)
        print("docs/tutorial.md: written anew")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(old.splitlines(True), new.splitlines(True), "docs/tutorial.md", "real")
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
