"""`--source git` on trees of real size, from a real `git daemon`.

Its repositories are made from the sdists, so this shows how a commit is fetched and that it gives
the sdist's trees; not that upstream's own commit has the tree of its sdist. That takes a network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchkit.series.pins import load_pins
from patchkit.source.pinned import fetch_pinned, sdist_of

ROOT = Path(__file__).resolve().parents[2]
PIN, NEXT = "v0.30.0", "v0.31.0"
MADE = re.compile(r"PKG-INFO|setup\.cfg|vllm/_version\.py|vllm\.egg-info/.*")
BEFORE, AFTER = 1500, 500
"""Commits of the long history before and after the release."""
GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}

pytestmark = [pytest.mark.real, pytest.mark.slow]


def git(at: Path, *args: str, input: bytes = b"") -> str:
    line = ["git", "-C", str(at), "-c", "user.name=t", "-c", "user.email=t@t", *args]
    done = subprocess.run(line, input=input, env=GIT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def stream_of(pin: str) -> Iterator[bytes]:
    """A commit of the sdist's tracked files, for git fast-import."""
    pins = load_pins((ROOT / "pins.toml").read_bytes())
    known = pins.pin(pin)
    archive = fetch_pinned(pins.upstream_of(known), known, sdist_of(known)[0])
    yield f"commit refs/heads/{pin}\ncommitter t <t@t> 1700000000 +0000\ndata 1\nx\n".encode()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is None or MADE.fullmatch(path):
                assert not member.issym()
                continue
            data = stream.read()
            mode = "755" if member.mode & 0o100 else "644"
            yield f"M {mode} inline {json.dumps(path)}\ndata {len(data)}\n".encode()
            yield data + b"\n"
    yield f"tag {pin}\nfrom refs/heads/{pin}\ntagger t <t@t> 1700000000 +0000\ndata 1\nx\n".encode()


def repository(at: Path, *, objects: Path | None = None) -> Path:
    """An empty bare repository; objects: one whose objects it has as well."""
    at.mkdir()
    git(at, "init", "-q", "--bare")
    git(at, "config", "uploadpack.allowFilter", "true")
    git(at, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(at, "config", "core.compression", "1")
    if objects is not None:
        (at / "objects/info/alternates").write_text(f"{objects}/objects\n")
    return at


@dataclass(frozen=True)
class Served:
    """url: of the daemon. at: the folder of its repositories. commits: pin -> commit."""

    url: str
    at: Path
    commits: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    at = tmp_path_factory.mktemp("served")
    plain = repository(at / "plain.git")
    stream = b"".join(part for pin in (PIN, NEXT) for part in stream_of(pin))
    git(plain, "fast-import", "--quiet", input=stream)
    commits = {pin: git(plain, "rev-parse", f"{pin}^{{commit}}") for pin in (PIN, NEXT)}
    tree = git(plain, "rev-parse", f"{PIN}^{{tree}}")

    long = repository(at / "long.git", objects=plain)
    history = []
    for number in range(BEFORE + 1 + AFTER):
        head = f"commit refs/heads/main\ncommitter t <t@t> {1700000000 + number} +0000\ndata 1\nx\n"
        if number == BEFORE:
            history.append(f'{head}M 040000 {tree} ""\n\ntag {PIN}\nfrom refs/heads/main\n')
            history.append("tagger t <t@t> 1700000000 +0000\ndata 1\nx\n")
        else:
            text = f"line {number}\n" * 400
            history.append(f"{head}M 644 inline notes/{number % 7}.txt\ndata {len(text)}\n{text}\n")
    git(long, "fast-import", "--quiet", input="".join(history).encode())

    deaf = repository(at / "no-filter.git", objects=plain)
    git(deaf, "config", "uploadpack.allowFilter", "false")
    git(deaf, "update-ref", f"refs/tags/{PIN}", commits[PIN])
    moved = repository(at / "moved.git", objects=plain)
    git(moved, "update-ref", f"refs/tags/{PIN}", commits[NEXT])

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    daemon = subprocess.Popen(
        [
            *("git", "daemon", "--reuseaddr", "--export-all", "--listen=127.0.0.1"),
            *(f"--port={port}", f"--base-path={at}", str(at)),
        ],
        env=GIT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            break
        except OSError:
            time.sleep(0.02)
    yield Served(f"git://127.0.0.1:{port}", at, commits)
    daemon.terminate()
    daemon.wait()


@dataclass
class Desk:
    """A project of its own with the real series of `PIN`, and a cache of its own."""

    at: Path
    cache: Path

    def run(self, *args: str, code: int = 0) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "patchkit", "-C", str(self.at), *args, "--json"],
            env=os.environ | {"PATCHKIT_CACHE": str(self.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def objects(self) -> dict[str, int]:
        """How many objects of each kind the store holds."""
        kinds = git(
            self.cache / "store-1.git",
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objecttype)",
        ).split()
        return {kind: kinds.count(kind) for kind in set(kinds)}


def desk(tmp_path: Path, served: Served, repository: str, pin: str = PIN, **said: str) -> Desk:
    at = tmp_path / "project"
    shutil.copytree(ROOT / "series" / PIN, at / "series" / PIN)
    stacks = (ROOT / "pins.toml").read_text().partition("\n[stacks.")
    commit = said or {"commit": served.commits[pin]}
    (at / "pins.toml").write_text(
        '[upstreams.vllm]\nkind = "vllm"\n'
        f'git = "{served.url}/{repository}"\n[pins."{PIN}"]\nupstream = "vllm"\n'
        + "".join(f'{name} = "{value}"\n' for name, value in commit.items())
        + "".join(stacks[1:])
    )
    return Desk(at, tmp_path / "cache")


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The base and the whole series on it by the sdist: its trees, made by `git apply`."""
    at = tmp_path_factory.mktemp("by-git")
    git(at, "init", "-q")
    git(at, "fast-import", "--quiet", input=b"".join(stream_of(PIN)))
    git(at, "read-tree", PIN)
    base = git(at, "write-tree")
    lines = (ROOT / "series" / PIN / "series").read_text().splitlines()
    names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    for name in names:
        git(at, "apply", "--cached", str(ROOT / "series" / PIN / name))
    return {"base": base, "patched": git(at, "write-tree")}


def test_a_series_is_locked_and_applied_with_few_files_of_the_commit(
    served: Served, wanted: dict[str, str], tmp_path: Path
) -> None:
    own = desk(tmp_path, served, "plain.git")
    own.run("fetch", "--pin", PIN, "--source", "git")
    found = own.objects()
    assert found["commit"] == 1
    assert found["tree"] > 500
    assert found.get("blob", 0) < 20  # those that may be generated files
    own.run("lock", "--pin", PIN, "--source", "git")
    report = own.run("apply", "--pin", PIN, "--source", "git", "--all", "--tree-only")
    assert (report["base_tree"], report["tree"]) == (wanted["base"], wanted["patched"])
    states = own.run("check", "--pin", PIN, "--source", "git")["pins"][0]["stacks"]
    assert {s["state"] for s in states} == {"clean"}
    assert own.objects()["blob"] < 1000  # of 7,155


def test_a_work_tree_has_every_file(served: Served, wanted: dict[str, str], tmp_path: Path) -> None:
    own = desk(tmp_path, served, "plain.git")
    own.run("lock", "--pin", PIN, "--source", "git")
    own.run("apply", "--pin", PIN, "--source", "git", "--all", "--to", str(tmp_path / "tree"))
    assert git(tmp_path / "tree", "status", "--porcelain") == ""
    assert git(tmp_path / "tree", "rev-parse", "HEAD^{tree}") == wanted["patched"]
    assert own.objects()["blob"] > 6000
    # And then no server is needed.
    served_by_nobody = (own.at / "pins.toml").read_text().replace(served.url, "git://127.0.0.1:1")
    (own.at / "pins.toml").write_text(served_by_nobody)
    assert own.run("check", "--pin", PIN, "--source", "git", "--offline")["ok"]


def test_of_a_long_history_one_commit_comes(
    served: Served, wanted: dict[str, str], tmp_path: Path
) -> None:
    long = served.at / "long.git"
    commit = git(long, "rev-parse", f"{PIN}^{{commit}}")
    assert len(git(long, "rev-list", "--all").split()) == BEFORE + 1 + AFTER
    own = desk(tmp_path, served, "long.git", commit=commit)
    (row,) = own.run("fetch", "--pin", PIN, "--source", "git")["pins"]
    assert (row["name"], row["tree"]) == (commit, wanted["base"])
    assert own.objects()["commit"] == 1
    size = sum(p.stat().st_size for p in (own.cache / "store-1.git").rglob("*") if p.is_file())
    assert size < 4 << 20


def test_a_server_that_cannot_leave_files_out_sends_all_and_that_is_said(
    served: Served, wanted: dict[str, str], tmp_path: Path
) -> None:
    own = desk(tmp_path, served, "no-filter.git")
    report = own.run("fetch", "--pin", PIN, "--source", "git")
    (note,) = report["findings"]
    assert note["note"]
    assert "cannot leave files out" in note["message"]
    assert report["pins"][0]["tree"] == wanted["base"]
    assert own.objects()["blob"] > 6000


def test_a_tag_that_is_elsewhere_is_drift_and_the_pinned_commit_is_fetched(
    served: Served, wanted: dict[str, str], tmp_path: Path
) -> None:
    own = desk(tmp_path, served, "moved.git")
    report = own.run("fetch", "--pin", PIN, "--source", "git", code=1)
    (finding,) = report["findings"]
    assert finding["name"] == "tag-moved"
    assert finding["expected"] == f"commit {served.commits[PIN]}"
    assert finding["found"] == f"commit {served.commits[NEXT]}"
    assert report["pins"][0]["tree"] == wanted["base"]


def test_a_pin_is_never_completed_by_the_commit_of_a_moved_tag(
    served: Served, tmp_path: Path
) -> None:
    own = desk(tmp_path, served, "moved.git", **{"commit-prefix": served.commits[PIN][:9]})
    (finding,) = own.run("pin", PIN, "--complete", code=1)["findings"]
    assert finding["name"] == "tag-moved"
    assert finding["found"] == f"commit {served.commits[NEXT]}"


def test_a_pin_is_not_completed_where_its_sdist_names_another_commit_than_the_tag(
    served: Served, tmp_path: Path
) -> None:
    own = desk(tmp_path, served, "plain.git", **{"commit-prefix": served.commits[PIN][:9]})
    pins = load_pins((ROOT / "pins.toml").read_bytes()).pin(PIN)
    name, digest = sdist_of(pins)
    text = (
        (own.at / "pins.toml").read_text().replace('kind = "vllm"', 'kind = "vllm"\npypi = "vllm"')
    )
    files = f'[pins."{PIN}".files]\n"{name}" = "sha256:{digest}"\n'
    (own.at / "pins.toml").write_text(text + files)
    (own.cache / "downloads").mkdir(parents=True)
    real = load_pins((ROOT / "pins.toml").read_bytes())
    shutil.copy(fetch_pinned(real.upstream_of(pins), pins, name), own.cache / "downloads")
    before = (own.at / "pins.toml").read_bytes()
    (finding,) = own.run("pin", PIN, "--complete", code=1)["findings"]
    assert finding["name"] == "pin-mismatch"
    assert served.commits[PIN] in finding["expected"]
    assert pins.commit[:9] in finding["found"]
    assert (own.at / "pins.toml").read_bytes() == before
