"""A folder that can be put back, commands run in it that are stopped at a write, and its state."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import patchkit
from tests.faults.stopping import GITS, STOPS, git_stopped_at, never
from tests.faults.writers import watch_writers
from tests.unit.target.killing import stopped_at

State = dict[str, str]
OURS = (".patchkit", "cache", "home", "said")
"""What a stop may leave in any state: journals, the store, and what the test writes itself."""
LOCK = ".pk-lock"
HUNG = 60
"""Seconds after which a command counts as hanging."""
NEVER = 1 << 30


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: its exit code, or minus the signal; writes, gits: how many calls
    that change the disk it made, and gits it started (0 where a signal ended it); said: all of
    its words."""

    code: int
    writes: int
    gits: int
    said: str


def warm_up() -> None:
    """Import all of patchkit here, so that no child has to."""
    for module in pkgutil.walk_packages(patchkit.__path__, "patchkit."):
        if ".inside" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("rich.table", "rich.console", "unidiff"):
        importlib.import_module(name)


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

    def run(self, *args: str, number: int = NEVER, kind: str = "") -> Ended:
        """`patchkit ARGS` in the folder `mine`, in a child; it is stopped at its `number`-th write
        (or git), in the way `kind`."""
        out = self.at / "said" / "out"
        told = self.at / "said" / "told"
        told.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _child(self.at, args, number, kind, out, told)
        _, status = os.waitpid(child, 0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        found = json.loads(told.read_text()) if told.exists() else {}
        assert not found.get("wrong"), f"{args} writes outside the files layer: {found['wrong']}"
        said = out.read_text(errors="replace")
        return Ended(code, found.get("writes", 0), found.get("gits", 0), said)

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

    def shape(self) -> str:
        """A digest of every file in the folder, the cache, journals and repositories too.

        Two stops that leave the same shape have the same future: what a command does next depends
        on nothing else. Left out: process ids in names and in lock files, times (of files, and
        those that git's index keeps).
        """
        found = hashlib.sha256()
        for folder, folders, files in os.walk(self.at):
            folders[:] = sorted(f for f in folders if Path(folder, f) != self.at / "said")
            for name in sorted([*folders, *files]):
                path = Path(folder, name)
                stat = path.lstat()
                found.update(_PID.sub("PID", str(path)).encode("utf-8", "surrogateescape"))
                found.update(b"%o" % stat.st_mode)
                if path.is_symlink():
                    found.update(os.readlink(path).encode())
                elif name == "index":
                    found.update(_git(path.parent.parent, "ls-files", "-s").encode())
                elif name in files and not name.endswith(("lock", "in-use")):
                    found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()


_PID = re.compile(
    r"\.\d+(?:-\w+)?(?=\.pk-|\.part)|(?<=\.pk-new-)\d+|(?<=/tmp_)\w+|(?<=/build/)(?:run|wheel)-[-\w]+"
)
"""What a process puts into the names of its unfinished files and folders."""


def _child(at: Path, args: tuple[str, ...], number: int, kind: str, out: Path, told: Path) -> None:
    """The command in this (forked) process; never returns."""
    wrong: list[str] = []
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
        from patchkit.store import git

        # What survives a power cut is `half_written`'s affair; waiting for a disk shows nothing.
        os.fsync = lambda handle: None
        git._ALWAYS["GIT_TEST_FSYNC"] = "0"
        code = 0
        stop = STOPS.get(kind, never)
        with (
            stopped_at(number if kind in STOPS else NEVER, stop) as seen,
            git_stopped_at(number if kind in GITS else NEVER, kind) as gits,
        ):
            watch_writers(wrong)
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            wrong = list(wrong)
        sys.stdout.flush()
        sys.stderr.flush()
        told.write_text(json.dumps({"writes": len(seen), "gits": len(gits), "wrong": wrong}))
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(99)
    os._exit(code)


def _git(at: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(at / ".git"), *args], capture_output=True, text=True, check=False
    )
    return done.stdout


def _unlocked(at: Path) -> None:
    for folder, _, _ in os.walk(at):
        os.chmod(folder, 0o755)
