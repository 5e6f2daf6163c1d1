"""A folder as source: read, never run, never written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchkit.engine.model import SYMLINK
from patchkit.errors import EnvironmentFault, Refused
from patchkit.series.pins import Pin, Upstream
from patchkit.source import open_source
from patchkit.source.folder import FolderSource
from patchkit.source.sdist import SdistSource
from patchkit.store import Store

from .conftest import COMMIT, FILES, GENERATED, NAME, SDIST, TRACKED, pin_of


def unpack(at: Path, files: dict[str, tuple[int, bytes]]) -> None:
    for path, (mode, data) in files.items():
        target = at / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)


def git(at: Path, *args: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(at.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "x"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        "GIT_AUTHOR_DATE": "@0 +0000",
        "GIT_COMMITTER_DATE": "@0 +0000",
    }
    return subprocess.run(
        ["git", "-C", str(at), *args], capture_output=True, check=True, env=env, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, str]:
    """A repository with the tracked files, and the id of its commit."""
    at = tmp_path / "checkout"
    at.mkdir()
    unpack(at, TRACKED)
    git(at, "init", "-q", "-b", "main")
    git(at, "add", "-A")
    git(at, "commit", "-q", "-m", "release")
    git(at, "tag", "v1.0")
    return at, git(at, "rev-parse", "HEAD")


@pytest.fixture
def sdist_tree(store: Store, upstream: Upstream) -> str:
    folder = Path(store.root, "downloads")
    folder.mkdir()
    (folder / NAME).write_bytes(SDIST)
    return SdistSource(upstream, offline=True).tree(store, pin_of()).tree_id


def test_an_unpacked_sdist_gives_the_tree_of_the_packed_one(
    store: Store, upstream: Upstream, tmp_path: Path, sdist_tree: str
) -> None:
    at = tmp_path / "demo-1.0"
    unpack(at, FILES)
    (at / "demo" / "__pycache__").mkdir()
    (at / "demo" / "__pycache__" / "x.pyc").write_bytes(b"left by Python")
    base = open_source(str(at), upstream).tree(store, pin_of())
    assert base.tree_id == sdist_tree
    assert set(base.generated) == set(GENERATED)
    assert (base.source, base.version) == ("folder", "1.0")


def test_an_edited_folder_gives_another_tree_every_time_it_changes(
    store: Store, upstream: Upstream, tmp_path: Path, sdist_tree: str
) -> None:
    at = tmp_path / "demo-1.0"
    unpack(at, FILES)
    source = FolderSource(str(at), upstream)
    (at / "demo" / "__init__.py").write_text("edited\n")
    assert source.tree(store, pin_of()).tree_id != sdist_tree
    unpack(at, FILES)
    assert source.tree(store, pin_of()).tree_id == sdist_tree


def test_an_unpacked_sdist_of_another_release_is_named(
    store: Store, upstream: Upstream, tmp_path: Path
) -> None:
    unpack(tmp_path / "d", FILES | {"PKG-INFO": (0o644, b"Version: 2.0\n\n")})
    with pytest.raises(Refused) as caught:
        FolderSource(str(tmp_path / "d"), upstream).tree(store, pin_of())
    assert caught.value.findings[0].found == "version 2.0"


def test_links_are_entries_and_are_not_followed(
    store: Store, upstream: Upstream, tmp_path: Path
) -> None:
    unpack(tmp_path / "d", FILES)
    (tmp_path / "d" / "out").symlink_to("/etc")
    (tmp_path / "d" / "demo" / "passwd").symlink_to("/etc/passwd")
    tree = FolderSource(str(tmp_path / "d"), upstream).tree(store, pin_of()).tree(store)
    found = tree.get("demo/passwd")
    assert found is not None
    assert (found.mode, found.data) == (SYMLINK, b"/etc/passwd")
    assert tree.is_folder("out") is False


def test_a_checkout_gives_the_tree_of_the_pinned_commit(
    store: Store, upstream: Upstream, checkout: tuple[Path, str], sdist_tree: str
) -> None:
    at, commit = checkout
    base = FolderSource(str(at), upstream).tree(store, pin_of(commit=commit))
    assert base.tree_id == sdist_tree
    assert base.commit == commit
    assert base.generated == {}


def test_what_is_checked_out_and_edited_plays_no_part(
    store: Store, upstream: Upstream, checkout: tuple[Path, str], sdist_tree: str
) -> None:
    at, commit = checkout
    (at / "demo" / "__init__.py").write_text("later\n")
    git(at, "commit", "-q", "-am", "later")
    (at / "README.md").write_text("edited, not committed\n")
    (at / "untracked").write_text("x")
    pin = pin_of(commit="", commit_prefix=commit[:9])
    assert FolderSource(str(at), upstream).tree(store, pin).tree_id == sdist_tree


def test_a_linked_work_tree_is_a_checkout_too(
    store: Store, upstream: Upstream, checkout: tuple[Path, str], tmp_path: Path, sdist_tree: str
) -> None:
    at, commit = checkout
    git(at, "worktree", "add", "-q", str(tmp_path / "linked"), "--detach")
    base = FolderSource(str(tmp_path / "linked"), upstream).tree(store, pin_of(commit=commit))
    assert base.tree_id == sdist_tree


def test_nothing_of_the_checkout_is_run_or_written(
    store: Store, upstream: Upstream, checkout: tuple[Path, str], tmp_path: Path
) -> None:
    at, _ = checkout
    trap = tmp_path / "trap"
    ran = f"touch {trap}; cat"
    (at / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(at, "add", ".gitattributes")
    git(at, "commit", "-q", "-m", "attributes")
    commit = git(at, "rev-parse", "HEAD")
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor"):
        git(at, "config", key, ran)
    git(at, "config", "core.alternateRefsCommand", ran)
    git(at, "config", "remote.origin.promisor", "true")
    # A missing object of a partial clone makes git run what its configuration says.
    git(at, "config", "remote.origin.url", str(at / ".git"))
    git(at, "config", "remote.origin.uploadpack", ran)
    git(at, "config", "core.repositoryFormatVersion", "1")
    git(at, "config", "extensions.partialClone", "origin")
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        file = at / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {trap}\n")
        file.chmod(0o755)
    before = {p: p.stat().st_mtime_ns for p in at.rglob("*")}
    base = FolderSource(str(at), upstream).tree(store, pin_of(commit=commit))
    assert base.tree(store).get("README.md") is not None
    blob = git(at, "rev-parse", "HEAD:demo/data/table.bin")
    (at / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with Store.open(tmp_path / "another") as other, pytest.raises(EnvironmentFault) as caught:
        FolderSource(str(at), upstream).tree(other, pin_of(commit=commit))
    assert "partial clone" in caught.value.findings[0].message
    assert blob in caught.value.findings[0].found
    (at / ".git" / "refs" / "heads" / "main").write_text("e" * 40 + "\n")
    (at / ".git" / "refs" / "tags" / "lost").write_text("f" * 40 + "\n")
    with pytest.raises(Refused) as missing:
        FolderSource(str(at), upstream).tree(store, pin_of(commit="e" * 40))
    assert missing.value.findings[0].found == "commit " + "e" * 40
    assert not trap.exists()
    after = {p: p.stat().st_mtime_ns for p in at.rglob("*")}
    changed = {p.name for p in before if p in after and before[p] != after[p]}
    # What this test itself wrote and removed:
    assert changed <= {blob[:2], "main", "tags"}
    assert {p.name for p in set(after) - set(before)} <= {"lost"}


def test_a_checkout_without_the_commit_is_named_with_what_it_has(
    store: Store, upstream: Upstream, checkout: tuple[Path, str]
) -> None:
    at, commit = checkout
    with pytest.raises(Refused) as caught:
        FolderSource(str(at), upstream).tree(store, pin_of())
    (finding,) = caught.value.findings
    assert finding.name == "pin-mismatch"
    assert finding.expected == f"commit {COMMIT}"
    assert finding.found == f"commit {commit} (v1.0)"
    assert finding.next.startswith(f"git -C {at} fetch origin {COMMIT}")


def test_an_empty_repository_is_named(store: Store, upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    git(tmp_path / "e", "init", "-q")
    with pytest.raises(Refused) as caught:
        FolderSource(str(tmp_path / "e"), upstream).tree(store, pin_of())
    assert caught.value.findings[0].found == "no commit"


def test_a_sdist_that_somebody_keeps_in_git_is_read_as_a_sdist(
    store: Store, upstream: Upstream, tmp_path: Path, sdist_tree: str
) -> None:
    at = tmp_path / "kept"
    unpack(at, FILES)
    git(at, "init", "-q")
    git(at, "add", "-A")
    git(at, "commit", "-q", "-m", "as unpacked")
    assert FolderSource(str(at), upstream).tree(store, pin_of()).tree_id == sdist_tree


def test_a_folder_inside_an_unrelated_repository_is_not_taken_for_it(
    store: Store, upstream: Upstream, checkout: tuple[Path, str], sdist_tree: str
) -> None:
    at, _commit = checkout
    unpack(at / "vendor" / "demo-1.0", FILES)
    source = FolderSource(str(at / "vendor" / "demo-1.0"), upstream)
    assert source.tree(store, pin_of(commit=COMMIT)).tree_id == sdist_tree


def test_variables_that_point_at_another_repository_play_no_part(
    store: Store,
    upstream: Upstream,
    checkout: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    sdist_tree: str,
) -> None:
    at, commit = checkout
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, "/nowhere")
    assert FolderSource(str(at), upstream).tree(store, pin_of(commit=commit)).tree_id == sdist_tree


def test_a_folder_that_is_not_there_is_named(store: Store, upstream: Upstream) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        FolderSource("/nowhere/at/all", upstream).tree(store, Pin("v1.0", "demo"))
    assert "no such folder" in caught.value.findings[0].message
