"""The small project with its base beside it, and a server that has its upstream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.bring.served import Served, serving
from tests.unit.rebase.ground import with_sources


@pytest.fixture
def mine(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """A project that knows where its base is and who its author is."""
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A. Author")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "a@example.invalid")
    with_sources(project)
    (project.series).mkdir(parents=True)
    (project.series / "series").write_text("")
    assert project.run("lock").code == 0
    return SmallProject(project.at, project.at / "sources" / "v1.0")


@pytest.fixture
def served(mine: SmallProject, tmp_path: Path) -> Iterator[Served]:
    """The server; pins.toml names it."""
    with serving(tmp_path, mine.base) as server:
        pins = mine.at / "pins.toml"
        pins.write_text(
            pins.read_text().replace(
                'package = "engine"\n', f'package = "engine"\ngit = "{server.url}"\n'
            )
        )
        yield server
