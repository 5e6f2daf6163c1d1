"""A history is read down its first parents, and nothing of its repository is run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchkit.series.pins import Pin
from patchkit.source.history import open_history
from patchkit.store import Store

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada Å" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.invalid" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "@1793946600 -0700" for who in ("AUTHOR", "COMMITTER")},
}


def git(at: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=at, env=ENV, capture_output=True, check=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """main: a, then a merge of two commits of a branch, then c. Tag v1.0 is a."""
    at = tmp_path / "repo"
    at.mkdir()
    git(at, "init", "-q", "-b", "main")
    git(at, "commit", "-q", "--allow-empty", "-m", "a")
    git(at, "tag", "-a", "-m", "release", "v1.0")
    git(at, "checkout", "-q", "-b", "side")
    for name in ("b1 (#11)", "b2 (#12)"):
        git(at, "commit", "-q", "--allow-empty", "-m", name)
    git(at, "checkout", "-q", "main")
    git(at, "merge", "-q", "--no-ff", "-m", "Merge pull request #77 from x/side", "side")
    git(at, "commit", "-q", "--allow-empty", "-m", 'Revert "b (#1)" (#13)\n\nWhy (#9).')
    return at


def test_only_first_parents_are_on_the_line(store: Store, repo: Path) -> None:
    old, merge, new = (git(repo, "rev-parse", x) for x in ("v1.0^{}", "main^", "main"))
    with open_history(store, str(repo)) as history:
        line = history.line(old, new)
        assert (line.fork, line.commits, line.whole) == (old, (merge, new), True)
        assert history.line(new, new).commits == ()
        assert history.line(git(repo, "rev-parse", "side"), new).fork == old


def test_a_commit_tells_who_when_and_which_pull_request(store: Store, repo: Path) -> None:
    with open_history(store, str(repo)) as history:
        told = history.told(git(repo, "rev-parse", "main"))
        assert (told.subject, told.number) == ('Revert "b (#1)" (#13)', 13)
        assert (told.author, told.day) == ("Ada Å", "2026-11-05")
        assert history.told(git(repo, "rev-parse", "main^")).number == 77


def test_a_pin_without_a_commit_is_its_tag(store: Store, repo: Path) -> None:
    with open_history(store, str(repo)) as history:
        assert history.commit_of(Pin("v1.0", "x")) == git(repo, "rev-parse", "v1.0^{}")


def test_hooks_and_settings_of_the_repository_are_not_obeyed(
    store: Store, repo: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    monitor = repo / ".git" / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {marker}\n")
    monitor.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(monitor))
    git(repo, "config", "core.alternateRefsCommand", str(monitor))
    new = git(repo, "rev-parse", "main")
    with open_history(store, str(repo)) as history:
        assert history.line(git(repo, "rev-parse", "v1.0^{}"), new).commits[-1] == new
    assert not marker.exists()
