"""A store in a temporary cache, and git itself as the referee."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patchkit.engine.model import File
from patchkit.store import Store

Git = Callable[..., bytes]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
def referee(store: Store) -> Git:
    """git in the store's repository: `referee("cat-file", "-p", oid)` gives its output."""

    def run(*args: str, input: bytes = b"", **env: str) -> bytes:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        return subprocess.run(
            ["git", f"--git-dir={store.git_dir}", *args],
            input=input,
            capture_output=True,
            check=True,
            env=clean | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | env,
        ).stdout

    return run


def imported(store: Store, files: dict[str, File]) -> str:
    """The id of a tree of `files`."""
    return store.import_tree((p, f.mode, f.data) for p, f in files.items())
