"""A person who types commands in a folder: each one runs in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli import main as program
from tests.conftest import Ran

AUTHOR = "A U Thor <author@example.org>"
LANES = "engine/lanes.py"


class Once(list[Any]):
    """Commands by name: one that is registered again takes the place of the old."""

    def append(self, command: Any) -> None:
        self[:] = [known for known in self if known.name != command.name] + [command]


class Desk:
    """A person in the folder `at`."""

    def __init__(
        self, at: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.at = at
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def run(self, *args: str, code: int = 0) -> Ran:
        """The command, in this process; its exit code must be `code`."""
        done = self.tried(*args)
        assert done.code == code, done.text
        return done

    def tried(self, *args: str) -> Ran:
        """The command, in this process, however it ends."""
        self.monkeypatch.setattr(sys, "argv", ["patchkit", *args])
        self.monkeypatch.chdir(self.at)
        self.capsys.readouterr()
        try:
            program.main()
            found = 0
        except SystemExit as error:
            found = error.code if isinstance(error.code, int) else 0
        text = self.capsys.readouterr()
        done = Ran(found, text.out, text.err)
        assert "Traceback" not in done.text
        return done

    def json(self, *args: str, code: int = 0) -> dict[str, Any]:
        """The one object of --json."""
        done = self.run(*args, "--json", code=code)
        body = json.loads(done.out)
        assert isinstance(body, dict)
        assert done.err == ""
        assert body["exit"] == code
        assert body["ok"] == (code == 0)
        return body

    def change(self, path: str, old: str, new: str) -> None:
        at = self.at / "build" / "edit-base" / path
        text = at.read_text()
        assert old in text
        at.write_text(text.replace(old, new, 1))

    def patch(self, name: str, old: str, new: str, *args: str) -> None:
        self.run("new", name, "--date", "2031-01-31", "--author", AUTHOR, *args)
        self.change(LANES, old, new)
        self.run("refresh", "--date", "2031-01-31")

    def bytes(self) -> dict[str, bytes]:
        return {
            str(p.relative_to(self.at)): p.read_bytes()
            for p in sorted(self.at.rglob("*"))
            if p.is_file() and "build" not in p.relative_to(self.at).parts
        }
