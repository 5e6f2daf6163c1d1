"""Run the pages of docs/ from an empty folder and hold their output against them.

Each fenced `console` block is a list of commands (`$ …`) and what they print; all blocks of a page
are one session of one shell. `python ci/tutorial.py [PAGE]...` says what differs and exits 1;
`--write` puts the real output in.
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
DOCS = ROOT / "docs"
PAGES = (
    *("tutorial", "patch-an-image", "carry-a-pr", "coming-from", "run-the-matrix"),
    "build-a-wheel",
)
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
        "GIT_AUTHOR_DATE": "2031-01-31T12:00:00 +0000",
        "GIT_COMMITTER_DATE": "2031-01-31T12:00:00 +0000",
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
    said = done.stdout.replace(str(at / "empty"), "/home/you")
    said = re.sub(r"(?<= )/\S+/python3(?:\.\d+)?(?= )", "python3", said)
    return said.split(MARK)[:-1]


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


def masked(text: str) -> str:
    """The page without what differs from day to day and from one release of ours to the next."""
    text = re.sub(r"\d{4}-\d\d-\d\d", "2031-01-31", text)
    text = re.sub(r"Date: .*", "Date: Fri, 31 Jan 2031 12:00:00 +0000", text)
    text = re.sub(r"\b[0-9a-f]{16}(?=  patchkit build)", "(digest)        ", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "(64 digits)", text)
    text = re.sub(r"(?m)^(size: +)\d+ bytes", r"\1… bytes", text)
    text = re.sub(r"\bseries [0-9a-f]{12}\b", "series …", text)
    text = re.sub(r"\d+ bytes, sha256 .*", "… bytes, sha256 …", text)
    return re.sub(r"Sha256: .*", "Sha256: …", text)


def main() -> int:
    """Compare or write; the exit code is returned."""
    names = [Path(arg).stem for arg in sys.argv[1:] if not arg.startswith("-")] or list(PAGES)
    code = 0
    for name in names:
        page = DOCS / f"{name}.md"
        old = page.read_text()
        new = masked(told(old))
        if new == old:
            print(f"docs/{name}.md: every command prints what it says")
        elif "--write" in sys.argv:
            page.write_text(new)
            print(f"docs/{name}.md: written anew")
        else:
            code = 1
            rows = difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), f"docs/{name}.md", "real"
            )
            sys.stdout.writelines(rows)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
