"""Releases and histories of the small project, made for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.conftest import SmallProject

QUIET = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.invalid" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-11-05T23:30:00 -0700" for who in ("AUTHOR", "COMMITTER")},
}

TO = ("rebase", "--pin", "v1.0", "--onto", "v2.0")


def with_sources(project: SmallProject) -> SmallProject:
    """The project with its base under sources/v1.0, and room for further releases."""
    sources = project.at / "sources"
    sources.mkdir()
    shutil.move(str(project.base), str(sources / "v1.0"))
    pins = project.at / "pins.toml"
    pins.write_text(
        pins.read_text().replace(
            'package = "engine"\n', 'package = "engine"\nsource = "sources/{pin}"\n'
        )
    )
    return SmallProject(project.at, sources / "v1.0")


def release(
    project: SmallProject,
    name: str,
    edits: Mapping[str, tuple[str, str] | None],
    commit: str = "",
    after: str = "v1.0",
) -> Path:
    """A release made of `after` by edits (old, new) of files; None deletes. Gives its folder."""
    at = project.at / "sources" / name
    shutil.copytree(project.at / "sources" / after, at)
    for path, edit in edits.items():
        if edit is None:
            (at / path).unlink()
            continue
        text = (at / path).read_text()
        assert edit[0] in text
        (at / path).write_text(text.replace(edit[0], edit[1], 1))
    with open(project.at / "pins.toml", "a") as pins:
        pins.write(f'\n[pins."{name}"]\nupstream = "engine"\ncommit = "{commit or name[1] * 40}"\n')
    return at


def git(at: Path, *args: str, input: bytes = b"") -> str:
    """One git command that must succeed; what it prints."""
    done = subprocess.run(
        ["git", *args], cwd=at, env=QUIET, input=input, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


Step = tuple[str, Mapping[str, str | None]]
"""A commit: its message, and files with their new text (None deletes)."""


def history(at: Path, base: Path, steps: Iterable[Step]) -> list[str]:
    """A repository at `at`: a commit of the folder `base`, then `steps` on one line.

    Gives the ids, oldest first. One fast-import: a thousand commits take no time.
    """
    at.mkdir()
    git(at, "init", "-q", "-b", "main")
    files = {
        str(path.relative_to(base)): path.read_text()
        for path in sorted(base.rglob("*"))
        if path.is_file()
    }
    stream: list[str] = []
    for number, (message, changes) in enumerate([("release", files), *steps], 1):
        stream.append(
            f"commit refs/heads/main\nmark :{number}\n"
            "author Ada <ada@example.invalid> 1793946600 -0700\n"
            "committer Ada <ada@example.invalid> 1793946600 -0700\n"
            f"data {len(message.encode())}\n{message}\n"
        )
        for path, text in changes.items():
            if text is None:
                stream.append(f"D {path}\n")
            else:
                stream.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")
    git(at, "fast-import", "--quiet", input="".join(stream).encode())
    git(at, "reset", "-q", "--hard", "main")
    return git(at, "rev-list", "--reverse", "main").splitlines()
