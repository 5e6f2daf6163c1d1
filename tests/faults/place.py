"""A folder that can be put back, commands run in it that are stopped at a write, and its state."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.target.killing import stopped_at

Stop = Callable[[str, tuple[Any, ...]], None]
State = dict[str, str]
OURS = (".patchkit", "cache", "home", "said")
"""What a stop may leave in any state: journals, the store, and what the test writes itself."""
LOCK = ".pk-lock"
HUNG = 60
"""Seconds after which a command counts as hanging."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: its exit code, or minus the signal; writes: how many calls that
    change the disk it made (0 where a signal ended it); said: all of its words."""

    code: int
    writes: int
    said: str


class Place:
    """The folder `at` with project, target and cache; `keep` remembers it, `restore` puts it back.

    It keeps its path: work trees name the store's folder.
    """

    def __init__(self, home: Path) -> None:
        self.at = home / "place"
        self.saved = home / "saved"
        self.at.mkdir(parents=True)
        (self.at / "home").mkdir()
        (self.at / "said").mkdir()

    def keep(self) -> None:
        """Remember how the folder is now."""
        shutil.copytree(self.at, self.saved, symlinks=True)

    def restore(self) -> None:
        """Put the folder back as it was remembered."""
        _unlocked(self.at)
        shutil.rmtree(self.at)
        shutil.copytree(self.saved, self.at, symlinks=True)

    def run(self, *args: str, number: int = 1 << 30, stop: Stop | None = None) -> Ended:
        """`patchkit ARGS` in the folder `mine`, in a child; `stop` is called instead of its
        `number`-th write."""
        out = self.at / "said" / "out"
        count = self.at / "said" / "count"
        count.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _child(self.at, args, number, stop or _never, out, count)
        _, status = os.waitpid(child, 0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        writes = int(count.read_text()) if count.exists() else 0
        return Ended(code, writes, out.read_text(errors="replace"))

    def must(self, *args: str) -> Ended:
        """As `run`; the command must succeed."""
        done = self.run(*args)
        assert done.code == 0, (args, done.said)
        return done

    def state(self) -> State:
        """Every file by name, with mode and digest; of a repository its refs and what differs."""
        found: State = {}
        for folder, folders, files in os.walk(self.at):
            here = Path(folder)
            if ".git" in folders:
                found[f"{here.relative_to(self.at)}: refs"] = _git(here, "for-each-ref")
                found[f"{here.relative_to(self.at)}: HEAD"] = _git(here, "rev-parse", "HEAD")
            folders[:] = sorted(f for f in folders if f != ".git" and f not in OURS)
            for name in files:
                if name.endswith(LOCK):
                    continue
                path = here / name
                data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                mode = "x" if path.stat(follow_symlinks=False).st_mode & 0o100 else "-"
                row = f"{mode} {hashlib.sha256(data).hexdigest()[:16]}"
                found[str(path.relative_to(self.at))] = row
        return found


def _child(
    at: Path, args: tuple[str, ...], number: int, stop: Stop, out: Path, count: Path
) -> None:
    """The command in this (forked) process; never returns."""
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL", "XDG_CONFIG_HOME"):
            os.environ.pop(name, None)
        os.environ.update(HOME=str(at / "home"), PATCHKIT_CACHE=str(at / "cache"), NO_COLOR="1")
        os.chdir(at / "mine")
        sys.argv = ["patchkit", *args]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(HUNG)
        from patchkit.cli.main import main

        code = 0
        with stopped_at(number, stop) as seen:
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
        count.write_text(str(len(seen)))
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(99)
    os._exit(code)


def _never(name: str, args: tuple[Any, ...]) -> None:
    raise AssertionError(f"{name} was not to be stopped")


def _git(at: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(at / ".git"), *args], capture_output=True, text=True, check=False
    )
    return done.stdout


def _unlocked(at: Path) -> None:
    for folder, _, _ in os.walk(at):
        os.chmod(folder, 0o755)
