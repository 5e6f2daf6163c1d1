"""A git address with a password: it is used, printed nowhere, and stored nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.series.pins import Upstream
from patchkit.source.graph import Graph
from patchkit.source.remote import Server
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


@pytest.mark.parametrize(
    ("written", "password"), [("p%40s%2Fs", "p@s/s"), ("p:s", "p:s"), ("p%C3%A4ss", "p\u00e4ss")]
)
def test_a_password_is_written_as_in_every_address(
    daemon: Daemon, store: Store, written: str, password: str
) -> None:
    with serving(daemon.at.parent, "me", password) as address:
        url = address.replace("//", f"//me:{written}@") + f"/{daemon.at.name}"
        assert Server(store, Upstream("demo", "plain", git=url), "v1.0").tag() == daemon.commit


@pytest.mark.parametrize("written", ["p@s3cret", "p/s3cret", "p#s3cret", "p?s3cret"])
def test_a_password_that_was_not_quoted_is_not_shown_either(store: Store, written: str) -> None:
    url = f"http://me:{written}@127.0.0.1:1/demo"
    with pytest.raises(EnvironmentFault) as caught:
        Server(store, Upstream("demo", "plain", git=url), "v1.0").tag()
    assert "s3cret" not in str(caught.value.findings)


def test_no_helper_of_the_user_gets_the_password_to_keep(
    daemon: Daemon, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    with serving(daemon.at.parent, "me", "s3cret") as address:
        url = address.replace("//", "//me:s3cret@") + f"/{daemon.at.name}"
        assert Server(store, Upstream("demo", "plain", git=url), "v1.0").tag() == daemon.commit
    assert not (tmp_path / ".git-credentials").exists()


def test_where_the_address_has_none_the_users_helper_is_asked(
    daemon: Daemon, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    with serving(daemon.at.parent, "me", "s3cret") as address:
        (tmp_path / ".git-credentials").write_text(address.replace("//", "//me:s3cret@") + "\n")
        for user in ("", "me@"):
            url = address.replace("//", f"//{user}") + f"/{daemon.at.name}"
            assert Server(store, Upstream("demo", "plain", git=url), "v1.0").tag() == daemon.commit


@pytest.fixture
def slow() -> Iterator[str]:
    """The address of a server that does not answer for a while."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            over.wait(20)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    over.set()
    server.shutdown()
    server.server_close()


def command_lines() -> list[str]:
    found = []
    for at in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(at.read_bytes().decode("utf-8", "replace"))
        except OSError:
            pass
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_no_command_line_holds_the_password(
    store: Store, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchkit.store.git.STILL", 3)
    url = slow.replace("//", "//me:s3cret-in-no-list@")
    server = Server(store, Upstream("demo", "plain", git=url), "v1.0")

    def ask() -> None:
        with pytest.raises(EnvironmentFault):
            server.tag()

    asking = threading.Thread(target=ask)
    asking.start()
    seen: list[str] = []
    until = time.monotonic() + 5
    while not any(slow in line for line in seen) and time.monotonic() < until:
        seen = command_lines()
    assert any(slow in line for line in seen)  # the helper that git started
    assert not any("s3cret-in-no-list" in line for line in seen)
    asking.join(10)


def test_a_server_that_stands_still_is_given_up(
    store: Store, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchkit.store.git.STILL", 1)
    before = time.monotonic()
    with pytest.raises(EnvironmentFault) as caught:
        Server(store, Upstream("demo", "plain", git=slow), "v1.0").tag()
    assert time.monotonic() - before < 10
    assert caught.value.findings[0].name == "network"
