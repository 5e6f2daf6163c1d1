"""A git server as source, played by a real `git daemon` on this machine."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from patchkit.engine.model import File
from patchkit.errors import EnvironmentFault, Refused
from patchkit.series.pins import Upstream
from patchkit.source import open_source
from patchkit.source.commit import GitSource
from patchkit.source.remote import Server
from patchkit.store import Commit, Store

from .conftest import FILES, NAME, SDIST, TRACKED, Daemon, pin_of


def source(daemon: Daemon, **changes: str) -> GitSource:
    values = {"git": daemon.url, "package": "demo"} | changes
    found = open_source("git", Upstream("demo", "plain", **values))
    assert isinstance(found, GitSource)
    return found


def absent(store: Store) -> set[str]:
    """Names of the tracked files whose blobs are not in the store."""
    oids = {File(data).oid: path for path, (_, data) in TRACKED.items()}
    return {oids[oid] for oid in store.objects.absent(oids)}


def test_one_commit_comes_without_blobs_and_these_when_they_are_needed(
    store: Store, daemon: Daemon
) -> None:
    pin = pin_of(commit=daemon.commit)
    base = source(daemon).tree(store, pin)
    assert (base.source, base.commit, base.drift) == ("git", daemon.commit, ())
    tree = base.tree(store)
    assert {f.path for f in tree.walk()} == set(TRACKED)
    assert absent(store) == set(TRACKED)
    tree.prefetch(["README.md"])
    assert tree.get("README.md") == File(b"# demo\n")
    assert absent(store) == set(TRACKED) - {"README.md"}
    assert tree.get("demo/__init__.py") is not None
    # The history is not fetched, nor what came later.
    assert not store.has(daemon.later)
    assert not store.has(daemon.git("rev-parse", f"{daemon.commit}^"))


def test_it_is_the_tree_of_the_sdist(store: Store, daemon: Daemon) -> None:
    (Path(store.root) / "downloads").mkdir()
    (Path(store.root) / "downloads" / NAME).write_bytes(SDIST)
    upstream = Upstream("demo", "plain", git=daemon.url, package="demo")
    pin = pin_of(commit="")
    packed = open_source("sdist", upstream, offline=True).tree(store, pin)
    fetched = open_source("git", upstream).tree(store, replace(pin, commit=daemon.commit))
    assert packed.tree_id == fetched.tree_id


def test_a_tree_written_over_it_needs_no_blob(store: Store, daemon: Daemon) -> None:
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    step = Commit({"demo/new.py": File(b"new\n")}, message="patch")
    chain = store.commit_chain(base.tree_id, [step], Commit({}))
    assert absent(store) == set(TRACKED)
    assert store.tree(chain.tree).get("demo/new.py") == File(b"new\n")


def test_complete_brings_every_blob(store: Store, daemon: Daemon) -> None:
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    base.complete(store)
    assert absent(store) == set()
    assert store.verify(base.tree_id) == ()


def test_the_next_time_no_server_is_needed(store: Store, daemon: Daemon) -> None:
    pin = pin_of(commit=daemon.commit)
    first = source(daemon).tree(store, pin)
    upstream = Upstream("demo", "plain", git=daemon.url, package="demo")
    again = GitSource(upstream, offline=True).tree(store, pin)
    assert again.tree_id == first.tree_id
    with pytest.raises(EnvironmentFault) as caught:
        again.complete(store)
    assert caught.value.findings[0].name == "network"
    assert caught.value.findings[0].found == f"{len(TRACKED)} are missing"


def test_offline_without_the_commit_says_what_to_do(store: Store, daemon: Daemon) -> None:
    upstream = Upstream("demo", "plain", git=daemon.url)
    for pin in (pin_of(commit=daemon.commit), pin_of(commit="", commit_prefix="1234567")):
        with pytest.raises(EnvironmentFault) as caught:
            GitSource(upstream, offline=True).tree(store, pin)
        assert caught.value.findings[0].next.startswith("patchkit fetch --pin v1.0 --source git")


def test_a_tag_that_was_moved_is_said_and_the_pinned_commit_is_used(
    store: Store, daemon: Daemon
) -> None:
    daemon.git("tag", "-f", "v1.0", daemon.later)
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    (finding,) = base.drift
    assert finding.name == "tag-moved"
    assert not finding.note
    assert finding.expected == f"commit {daemon.commit}"
    assert finding.found == f"commit {daemon.later}"
    assert base.tree(store).get("README.md") == File(b"# demo\n")


def test_a_server_that_cannot_leave_blobs_out_sends_them(store: Store, daemon: Daemon) -> None:
    daemon.git("config", "uploadpack.allowFilter", "false")
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    (note,) = base.gaps
    assert note.note
    assert "cannot leave files out" in note.message
    assert absent(store) == set()
    base.complete(store)
    assert store.verify(base.tree_id) == ()


def old_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """With it a server refuses ids that no ref names, unless it is told to allow them."""
    from patchkit.store import git

    settings = [(k, "0" if k == "protocol.version" else v) for k, v in git._SETTINGS]
    monkeypatch.setattr(git, "_SETTINGS", settings)


def test_a_server_that_serves_no_bare_id_is_asked_for_the_tag(
    store: Store, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_protocol(monkeypatch)
    daemon.git("config", "uploadpack.allowAnySHA1InWant", "false")
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    assert {f.path for f in base.tree(store).walk()} == set(TRACKED)


def test_where_only_a_moved_tag_can_be_had_nothing_is_taken(
    store: Store, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_protocol(monkeypatch)
    daemon.git("config", "uploadpack.allowAnySHA1InWant", "false")
    daemon.git("tag", "-f", "v1.0", daemon.later)
    with pytest.raises(Refused) as caught:
        source(daemon).tree(store, pin_of(commit=daemon.commit))
    assert caught.value.findings[0].name == "tag-moved"


def test_the_beginning_of_an_id_is_completed_by_the_tag(store: Store, daemon: Daemon) -> None:
    pin = pin_of(commit="", commit_prefix=daemon.commit[:9])
    assert source(daemon).tree(store, pin).commit == daemon.commit
    pin = pin_of(commit="", commit_prefix="d" * 9)
    with pytest.raises(Refused) as caught:
        source(daemon).tree(store, pin)
    assert caught.value.findings[0].name == "tag-moved"
    pin = pin_of(name="v9", commit="", commit_prefix=daemon.commit[:9])
    with pytest.raises(Refused) as caught:
        source(daemon).tree(store, pin)
    assert caught.value.findings[0].found == "no such tag"


def test_a_commit_that_the_server_lacks_is_named(store: Store, daemon: Daemon) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        source(daemon).tree(store, pin_of(commit="d" * 40))
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert "the server has none of that id" in finding.next
    assert "the sdist needs no git server" in finding.next
    with pytest.raises(EnvironmentFault) as caught:
        source(daemon).tree(store, pin_of(commit="d" * 40, files={}))
    assert "sdist" not in caught.value.findings[0].next  # it has none


def test_no_server_at_all_is_named_without_its_password(store: Store, daemon: Daemon) -> None:
    url = "http://user:secret@127.0.0.1:1/demo"
    with pytest.raises(EnvironmentFault) as caught:
        source(daemon, git=url).tree(store, pin_of(commit=daemon.commit))
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert "127.0.0.1" in finding.message
    assert "secret" not in str(finding)


def test_an_upstream_without_an_address_is_named(store: Store) -> None:
    with pytest.raises(Refused) as caught:
        GitSource(Upstream("demo", "plain")).tree(store, pin_of())
    assert caught.value.findings[0].name == "bad-pins"


def test_a_helper_that_runs_a_command_is_never_used(
    store: Store, daemon: Daemon, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    with pytest.raises(EnvironmentFault):
        source(daemon, git=f"ext::sh -c touch% {trap}").tree(store, pin_of(commit=daemon.commit))
    assert not trap.exists()


def test_an_address_is_never_taken_for_an_option(
    store: Store, daemon: Daemon, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    url = f"--upload-pack=touch {trap}; false"
    with pytest.raises(EnvironmentFault):
        source(daemon, git=url).tree(store, pin_of(commit=daemon.commit))
    assert not trap.exists()


def test_a_fetch_that_was_killed_does_not_lock_the_next_one_out(
    store: Store, daemon: Daemon
) -> None:
    source(daemon).tree(store, pin_of(commit=daemon.commit))
    (small,) = Path(store.root, "remotes").glob("*.git")
    (small / "shallow.lock").write_text("")
    pin = pin_of(name="later", commit=daemon.later)
    assert source(daemon).tree(store, pin).commit == daemon.later


def test_what_is_there_of_a_partial_base_is_verified(store: Store, daemon: Daemon) -> None:
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    base.tree(store).prefetch(["README.md"])
    assert base.verify(store) == ()
    oid = File(TRACKED["README.md"][1]).oid
    for pack in Path(store.git_dir, "objects", "pack").glob("*.idx"):
        shown = subprocess.run(
            ["git", "verify-pack", "-v", str(pack)], capture_output=True, text=True, check=True
        ).stdout
        if oid in shown:
            data = bytearray(pack.with_suffix(".pack").read_bytes())
            data[len(data) // 2] ^= 0xFF
            os.chmod(pack.with_suffix(".pack"), 0o644)
            pack.with_suffix(".pack").write_bytes(bytes(data))
    store.objects.close()
    assert [f.where.file for f in base.verify(store)] == ["README.md"]


def test_generated_files_that_a_commit_tracks_are_left_out_as_in_a_sdist(
    store: Store, daemon: Daemon
) -> None:
    (daemon.at / "setup.cfg").write_bytes(FILES["setup.cfg"][1])
    (daemon.at / "README.md").write_bytes(TRACKED["README.md"][1])
    daemon.git("add", "-A")
    daemon.git("commit", "-q", "-m", "tracks what sdist writes")
    pin = pin_of(name="other", commit=daemon.git("rev-parse", "HEAD"))
    base = source(daemon).tree(store, pin)
    assert {f.path for f in base.tree(store).walk()} == set(TRACKED)


def test_the_store_itself_knows_of_no_server(store: Store, daemon: Daemon) -> None:
    source(daemon).tree(store, pin_of(commit=daemon.commit))
    config = (Path(store.git_dir) / "config").read_text()
    assert "promisor" not in config
    assert "partialclone" not in config.lower()
    assert not (Path(store.git_dir) / "shallow").exists()


def test_joining_packs_keeps_a_partial_commit_whole(
    store: Store, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = source(daemon).tree(store, pin_of(commit=daemon.commit))
    monkeypatch.setattr("patchkit.store.repo._MANY_PACKS", 3)
    for n in range(8):
        store.write_tree(base.tree_id, {"new": File(b"%d" % n)})
    store.objects.close()
    assert {f.path for f in base.tree(store).walk()} == set(TRACKED)
    base.complete(store)
    assert store.verify(base.tree_id) == ()


def test_the_tag_can_be_asked_alone(store: Store, daemon: Daemon) -> None:
    upstream = Upstream("demo", "plain", git=daemon.url)
    assert Server(store, upstream, "v1.0").tag() == daemon.commit
    assert Server(store, upstream, "v0.9").tag() == ""


def test_a_moved_tag_is_said_every_time_until_it_is_back(store: Store, daemon: Daemon) -> None:
    pin = pin_of(commit=daemon.commit)
    daemon.git("tag", "-f", "v1.0", daemon.later)
    upstream = Upstream("demo", "plain", git=daemon.url, package="demo")
    for offline in (False, False, True):
        (finding,) = GitSource(upstream, offline).tree(store, pin).drift
        assert (finding.name, finding.found) == ("tag-moved", f"commit {daemon.later}")
    daemon.git("tag", "-f", "v1.0", daemon.commit)
    assert GitSource(upstream).tree(store, pin).drift == ()
    assert GitSource(upstream, offline=True).tree(store, pin).drift == ()


def test_who_asks_hears_of_a_tag_that_was_moved_since(store: Store, daemon: Daemon) -> None:
    pin = pin_of(commit=daemon.commit)
    upstream = Upstream("demo", "plain", git=daemon.url, package="demo")
    assert GitSource(upstream).tree(store, pin).drift == ()
    daemon.git("tag", "-f", "v1.0", daemon.later)
    assert GitSource(upstream).tree(store, pin).drift == ()  # all is in the cache
    (finding,) = GitSource(upstream, asking=True).tree(store, pin).drift
    assert finding.found == f"commit {daemon.later}"
    daemon.at.rename(daemon.at.with_name("away"))
    base = GitSource(upstream, asking=True).tree(store, pin)
    assert [f.name for f in base.drift] == ["tag-moved"]
    (note,) = base.gaps
    assert note.note
    assert "not compared again" in note.message


def test_a_pin_of_first_digits_needs_no_server_the_next_time(store: Store, daemon: Daemon) -> None:
    pin = pin_of(commit="", commit_prefix=daemon.commit[:9])
    first = source(daemon).tree(store, pin)
    upstream = Upstream("demo", "plain", git=daemon.url, package="demo")
    again = GitSource(upstream, offline=True).tree(store, pin)
    assert (again.tree_id, again.commit) == (first.tree_id, daemon.commit)


def test_a_pin_that_is_not_called_as_its_tag_is_found_by_its_release(
    store: Store, daemon: Daemon
) -> None:
    pin = pin_of(name="mine", commit="", commit_prefix=daemon.commit[:9])
    assert source(daemon).tree(store, pin).commit == daemon.commit  # demo-1.0.tar.gz: v1.0


def test_a_server_that_gives_no_blob_by_its_id_sends_them_with_the_tag(
    store: Store, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_protocol(monkeypatch)
    daemon.git("config", "uploadpack.allowAnySHA1InWant", "false")
    source(daemon).tree(store, pin_of(commit=daemon.commit))
    assert absent(store) == set(TRACKED)
    source(daemon).tree(store, pin_of(commit=daemon.commit)).complete(store)
    assert absent(store) == set()


def test_a_commit_that_came_without_blobs_can_be_had_whole(store: Store, daemon: Daemon) -> None:
    server = Server(store, Upstream("demo", "plain", git=daemon.url), "v1.0")
    server.fetch_commit(daemon.commit)
    assert absent(store) == set(TRACKED)
    server.fetch_whole(daemon.commit)
    assert absent(store) == set()


def test_a_repository_with_other_ids_is_named(store: Store, daemon: Daemon) -> None:
    other = Path(f"{daemon.at}-sha256")
    daemon.git("init", "-q", "-b", "main", "--object-format=sha256", str(other))
    there = replace(daemon, at=other, url=f"{daemon.url}-sha256")
    there.git("commit", "-q", "--allow-empty", "-m", "release")
    there.git("tag", "v1.0")
    for pin in (pin_of(commit=daemon.commit), pin_of(commit="", commit_prefix="1234567")):
        with pytest.raises(EnvironmentFault) as caught:
            source(there).tree(store, pin)
        assert "SHA-256" in caught.value.findings[0].message


@pytest.mark.parametrize("page", [b"<html>sign in</html>", b"<html>\nsign in\n</html>\n", b""])
def test_a_web_page_is_no_git_server(store: Store, daemon: Daemon, page: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/demo.git"
        with pytest.raises(EnvironmentFault) as caught:
            Server(store, Upstream("demo", "plain", git=url), "v1.0").tag()
        assert caught.value.findings[0].name == "network"
    finally:
        server.shutdown()
        server.server_close()


def test_an_empty_repository_has_no_tag_to_compare(store: Store, daemon: Daemon) -> None:
    empty = Path(f"{daemon.at}-empty")
    daemon.git("init", "-q", "--bare", str(empty))
    with pytest.raises(EnvironmentFault, match="neither branch nor tag"):
        Server(store, Upstream("demo", "plain", git=f"{daemon.url}-empty"), "v1.0").tag()


def test_a_full_disk_is_no_fault_of_the_network(store: Store) -> None:
    from patchkit.source.asking import Asking
    from patchkit.store import git

    said = b"fatal: write error: No space left on device\nfatal: fetch-pack: invalid output\n"
    error = Asking(store, "https://h/x")._failed(git.fault(["fetch"], 128, said).findings[0])
    assert [f.name for f in error.findings] == ["disk"]


def committed(daemon: Daemon, *paths: str) -> str:
    """A commit with files of these names besides the tracked ones."""
    blob = daemon.git("rev-parse", f"{daemon.commit}:README.md")
    daemon.git("read-tree", daemon.commit)
    for path in paths:
        daemon.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree = daemon.git("write-tree")
    commit = daemon.git("commit-tree", "-m", "more", tree)
    daemon.git("update-ref", "refs/heads/more", commit)
    return commit


def test_names_that_no_other_source_may_hold_are_refused(store: Store, daemon: Daemon) -> None:
    bad = ["demo\\..\\out", "c:out", "demo/two\nlines", "demo/" + "n" * 300]
    pin = pin_of(name="bad", commit=committed(daemon, *bad))
    for _ in range(2):  # and no record of it is kept
        with pytest.raises(Refused) as caught:
            source(daemon).tree(store, pin)
        assert {f.where.file for f in caught.value.findings} == set(bad)
        assert {f.name for f in caught.value.findings} == {"path-escape"}


def test_files_that_may_be_generated_are_asked_for_in_one_go(
    store: Store, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        (daemon.at / f"demo/p{n}").mkdir()
        (daemon.at / f"demo/p{n}/setup.cfg").write_text(f"[metadata]\n# {n}\n")
    daemon.git("add", "-A")
    daemon.git("commit", "-q", "-m", "many of them")
    asked: list[int] = []
    fetch = Server._fetch

    def counted(self: Server, wants: Sequence[str], *args: str) -> None:
        asked.append(len(wants))
        fetch(self, wants, *args)

    monkeypatch.setattr(Server, "_fetch", counted)
    source(daemon).tree(store, pin_of(name="many", commit=daemon.git("rev-parse", "HEAD")))
    assert asked == [1, 5]
