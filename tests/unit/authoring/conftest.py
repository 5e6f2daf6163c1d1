"""A project to work in; the cache is shared by all tests of the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.authoring.making import Bench, make_bench


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug here, and waiting for the disk takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def bench(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PATCHKIT_CACHE", os.fspath(cache))
    return make_bench(tmp_path)


@pytest.fixture
def came(tmp_path: Path) -> Path:
    at = tmp_path / "came"
    at.mkdir()
    return at
