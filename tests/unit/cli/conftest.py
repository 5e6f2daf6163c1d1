"""A desk in an empty folder, and one with a project that has begun."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.cli import app as application
from tests.unit.cli.desk import Desk, Once


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    """An empty folder beside an upstream."""
    source = tmp_path / "upstream" / "engine"
    source.mkdir(parents=True)
    (source / "lanes.py").write_text("".join(f"line {n}\n" for n in range(40)))
    (tmp_path / "mine").mkdir()
    # Each run of the command registers the verbs; here many runs share one process.
    monkeypatch.setattr(application.app, "registered_commands", Once())
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Desk(tmp_path / "mine", monkeypatch, capsys)


@pytest.fixture
def begun(desk: Desk) -> Desk:
    """A project with one patch."""
    desk.run("init", "--upstream", "engine", "--source", "../upstream")
    desk.patch("five", "line 5\n", "line five\n")
    return desk
