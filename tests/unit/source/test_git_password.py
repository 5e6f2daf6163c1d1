"""A git address with a password: it is used, printed nowhere, and stored nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.source.graph import Graph
from patchkit.store import Store

from .conftest import Daemon
from .githttp import serving
from .test_access import holding


def run(at: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patchkit", "-C", str(at), *args],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("password", ["s3cret", "another"])
def test_a_password_in_the_address_is_used_and_kept_from_output_and_cache(
    daemon: Daemon, tmp_path: Path, password: str
) -> None:
    with serving(daemon.at.parent, "me", "s3cret") as address:
        at = tmp_path / "project"
        at.mkdir()
        url = address.replace("//", f"//me:{password}@") + f"/{daemon.at.name}"
        (at / "pins.toml").write_text(
            f'[upstreams.demo]\nkind = "plain"\npackage = "demo"\ngit = "{url}"\n'
            f'[pins."v1.0"]\nupstream = "demo"\ncommit = "{daemon.commit}"\n'
        )
        done = [
            run(at, "fetch", "--source", "git", *more)
            for more in ((), ("--json",), ("--pin", "v1.0"))
        ]
    said = "".join(d.stdout + d.stderr for d in done)
    assert {d.returncode for d in done} == {0 if password == "s3cret" else 3}, said
    assert password not in said
    assert holding(password, tmp_path / "the-cache") == []


def test_the_history_of_a_server_is_kept_without_its_password(daemon: Daemon, store: Store) -> None:
    with serving(daemon.at.parent, "me", "s3cret") as address:
        url = address.replace("//", "//me:s3cret@") + f"/{daemon.at.name}"
        graph = Graph(store, url)
        assert graph.refs("refs/heads/main") == {"refs/heads/main": daemon.later}
        graph.fetch(["refs/heads/main", daemon.commit])
        assert graph.parent(daemon.later) == daemon.commit
        with pytest.raises(EnvironmentFault) as caught:
            Graph(store, url.replace("s3cret", "other-s3cret")).refs("refs/heads/main")
    assert "s3cret" not in str(caught.value.findings)
    assert holding("s3cret", Path(store.root)) == []
