"""A project, a folder outside of it that nobody may touch, and a way to attack."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from patchkit.cli import app as application
from patchkit.errors import NAMES
from tests.conftest import Ran
from tests.hostile.watching import watched
from tests.unit.cli.desk import Desk, Once

SECRET = "the-secret-of-somebody-else"
HUNG = 20
"""Seconds after which a command counts as hanging."""


class Hangs(BaseException):
    """No `except Exception` of the command may take it for an error of its own."""


@contextmanager
def limited() -> Iterator[None]:
    """The block may take no longer than `HUNG` seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hangs("the command hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HUNG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Yard:
    """A person in a project. outside: a folder beside all others, with a `secret` file and a
    `victim.py` in it. tree: a folder that patches are applied to. at: the project."""

    def __init__(self, desk: Desk, home: Path) -> None:
        self.desk = desk
        self.home = home
        self.at = desk.at
        self.tree = home / "tree"
        self.outside = home / "outside"

    def run(self, *args: str) -> Ran:
        """One command, whatever it says."""
        with limited():
            return self.desk.tried(*args)

    def attack(self, *args: str, code: int = 1, codes: Collection[int] = ()) -> dict[str, Any]:
        """One command: its JSON. Nothing outside was opened, read or written, and the secret is
        nowhere. codes: exit codes of which it has one."""
        before = _bytes(self.outside)
        with watched(self.outside) as seen:
            done = self.run(*args, "--json")
        assert done.code in (codes or (code,)), done.text
        said: dict[str, Any] = json.loads(done.out)
        assert (done.err, said["exit"]) == ("", done.code)
        assert all(f["name"] in NAMES for f in said["findings"]), said
        assert SECRET not in done.text
        assert seen == []
        assert _bytes(self.outside) == before
        return said

    def names(self, *args: str, code: int = 1) -> set[str]:
        """The names of the findings with which the command refuses; none of its files changed."""
        before = {**_bytes(self.tree), **_bytes(self.at)}
        said = self.attack(*args, code=code)
        assert {**_bytes(self.tree), **_bytes(self.at)} == before
        found = {f["name"] for f in said["findings"] if not f["note"]}
        return found | {lint["rule"] for lint in said.get("lints", ())}

    def kept(self) -> None:
        """The secret stands in no file of the project, the tree or the cache, nor in an object of
        a repository there."""
        wanted = SECRET.encode()
        theirs = (self.outside, self.home / "repo")
        for path in self.home.rglob("*"):
            if (
                path.is_symlink()
                or not path.is_file()
                or any(path.is_relative_to(t) for t in theirs)
            ):
                continue
            assert wanted not in path.read_bytes(), path
        for path in self.home.rglob("*"):
            if path.name == "HEAD" and not any(path.is_relative_to(t) for t in theirs):
                assert wanted not in _objects(path.parent), path.parent

    def file(self, path: str, text: str | bytes) -> Path:
        """Write a file below the home folder."""
        at = self.home / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(text.encode() if isinstance(text, str) else text)
        return at

    def series(self, *patches: str) -> Path:
        """A quilt folder of `patches`."""
        names = []
        for number, text in enumerate(patches, 1):
            self.file(f"given/p{number}.patch", text)
            names.append(f"p{number}.patch\n")
        self.file("given/series", "".join(names))
        return self.home / "given"


def _bytes(at: Path) -> dict[str, bytes]:
    """Every name below with what stands there; git's own folders and locks left out."""
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(at):
        folders[:] = [f for f in folders if f not in (".git", "build")]
        for name in [*names, *folders]:
            path = Path(folder, name)
            if path.is_symlink():
                found[str(path)] = b"-> " + os.fsencode(os.readlink(path))
            elif path.is_file():
                found[str(path)] = path.read_bytes()
            elif not path.is_dir():
                found[str(path)] = b"special"
            else:
                found[str(path)] = b"folder"
    return found


def _objects(git_dir: Path) -> bytes:
    done = subprocess.run(
        ["git", f"--git-dir={git_dir}", "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.devnull},
    )
    return done.stdout


LINES = "".join(f"line {n}\n" for n in range(40))


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one patch, to be copied."""
    home = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATCHKIT_CACHE", str(home / "cache"))
        patched.setenv("HOME", str(home))
        patched.setenv("GIT_AUTHOR_NAME", "A U Thor")
        patched.setenv("GIT_AUTHOR_EMAIL", "author@example.org")
        lay_out(home)
        for line in (
            "init --upstream engine --source ../upstream",
            "import ../five.patch --date 2031-01-31",
        ):
            done = subprocess.run(
                [sys.executable, "-m", "patchkit", *line.split()],
                cwd=home / "mine",
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return home / "mine"


def lay_out(home: Path) -> None:
    """The upstream, an empty project, and a patch for it."""
    (home / "mine").mkdir()
    (home / "upstream" / "engine").mkdir(parents=True)
    (home / "upstream" / "engine" / "lanes.py").write_text(LINES)
    (home / "upstream" / "engine" / "__init__.py").write_text("")
    (home / "five.patch").write_text(edit("a/engine/lanes.py", line=5))


@pytest.fixture
def yard(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Yard]:
    """A project with one patch on a small upstream, a tree like the upstream, and an outside."""
    monkeypatch.setattr(application.app, "registered_commands", Once())
    for name in ("EMAIL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A U Thor")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "author@example.org")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for name in ("home", "outside/folder"):
        (tmp_path / name).mkdir(parents=True)
    lay_out(tmp_path)
    shutil.copytree(tmp_path / "upstream", tmp_path / "tree")
    shutil.copytree(project, tmp_path / "mine", dirs_exist_ok=True)
    made = Yard(Desk(tmp_path / "mine", monkeypatch, capsys), tmp_path)
    made.file("outside/secret", f"{SECRET}\n")
    made.file("outside/victim.py", LINES.replace("line 7\n", f"{SECRET}\n"))
    yield made
    made.kept()


def edit(path: str, new_path: str = "", line: int = 20) -> str:
    """A patch of one line of a file like lanes.py."""
    return (
        f"--- {path}\n+++ {new_path or path}\n@@ -{line},3 +{line},3 @@\n line {line - 1}\n"
        f"-line {line}\n+line twenty\n line {line + 1}\n"
    )


def create(path: str, lines: Iterable[str] = ("x = 1",), mode: str = "100644") -> str:
    """A patch that makes a file; with mode 120000 a link, with 160000 a submodule."""
    body = list(lines)
    end = "\n\\ No newline at end of file\n" if mode == "120000" else "\n"
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..1111111\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(body)} @@\n"
        + "\n".join(f"+{line}" for line in body)
        + end
    )
