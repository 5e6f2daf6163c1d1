"""Repositories of strangers: as a source, as a fork whose commits are imported, as a work tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.conftest import LINES, SECRET, Yard

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_AUTHOR_DATE": "@1700000000 +0000",
    "GIT_COMMITTER_DATE": "@1700000000 +0000",
}


def git(at: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(at), *args], env=ENV, capture_output=True, check=True)
    return done.stdout.decode().strip()


class Repository:
    """A checkout of two commits; the pin v1.0 of the project is the first one."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.at = yard.home / "repo"
        yard.file("repo/engine/lanes.py", LINES)
        git(self.at, "init", "-q", "-b", "main")
        git(self.at, "add", "-A")
        git(self.at, "commit", "-qm", "release")
        self.commit = git(self.at, "rev-parse", "HEAD")
        yard.file("repo/engine/lanes.py", LINES.replace("line 9\n", "line nine\n"))
        git(self.at, "commit", "-qam", "nine")
        yard.file(
            "mine/pins.toml",
            '[upstreams.engine]\nkind = "plain"\npackage = "engine"\nsource = "../repo"\n'
            f'[pins."v1.0"]\nupstream = "engine"\ncommit = "{self.commit}"\n',
        )
        yard.file("mine/series/v1.0/series", "")

    @property
    def git_dir(self) -> Path:
        return self.at / ".git"

    def objects(self) -> list[Path]:
        """The loose objects."""
        return sorted(p for p in (self.git_dir / "objects").glob("??/*") if p.is_file())

    def verbs(self) -> list[tuple[str, ...]]:
        """What reads the repository: the second one reads its refs, too."""
        return [
            ("lock", "--pin", "v1.0"),
            ("import", "--commits", f"{self.commit}..main", "--from", str(self.at), "--check"),
        ]


@pytest.fixture
def repo(yard: Yard) -> Repository:
    return Repository(yard)


def _both(repo: Repository, *codes: int) -> list[set[str]]:
    """Each verb's findings; its exit code is one of `codes`."""
    found = []
    for line in repo.verbs():
        said = repo.yard.attack(*line, codes=codes)
        found.append({f["name"] for f in said["findings"] if not f["note"]})
    return found


def test_an_honest_one_is_read(repo: Repository) -> None:
    assert _both(repo, 0) == [set(), set()]


def test_git_cve_2022_39253_objects_that_are_links(repo: Repository) -> None:
    """A local clone copied what the links in the object folder lead to."""
    for path in repo.objects():
        path.unlink()
        os.symlink(repo.yard.outside / "secret", path)
    assert _both(repo, 1) == [{"symlink-in-path"}, {"symlink-in-path"}]


@pytest.mark.parametrize("name", ["aa", "pack", "info"])
def test_git_cve_2022_39253_a_folder_of_objects_that_is_a_link(repo: Repository, name: str) -> None:
    at = repo.git_dir / "objects" / name
    if at.exists():
        shutil.rmtree(at)
    os.symlink(repo.yard.outside, at)
    assert _both(repo, 1) == [{"symlink-in-path"}, {"symlink-in-path"}]


def test_git_cve_2022_39253_the_object_folder_is_a_link(repo: Repository) -> None:
    """Then it is no repository: its files are taken as they stand."""
    (repo.git_dir / "objects").rename(repo.yard.outside / "objects")
    os.symlink(repo.yard.outside / "objects", repo.git_dir / "objects")
    assert _both(repo, 0, 1, 2)[1] == {"usage"}


def test_git_cve_2022_39253_alternates(repo: Repository) -> None:
    """git looks for objects there by id, as in any clone with a reference; a name of a file that
    nobody knows the id of gives nothing."""
    private = repo.yard.outside / "private"
    private.mkdir()
    git(private, "init", "-q")
    (private / "key").write_text(SECRET)
    git(private, "add", "key")
    info = repo.git_dir / "objects" / "info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text(f"{private}/.git/objects\n")
    for line in repo.verbs():
        done = repo.yard.run(*line)
        assert done.code == 0, done.text
        assert SECRET not in done.text


def _link(at: Path, target: Path) -> None:
    at.unlink(missing_ok=True)
    at.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, at)


def _fifo(at: Path, target: Path) -> None:
    at.unlink(missing_ok=True)
    at.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(at)


def _folder(at: Path, target: Path) -> None:
    at.unlink(missing_ok=True)
    at.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("make", [_link, _fifo, _folder])
@pytest.mark.parametrize(
    "name", ["HEAD", "packed-refs", "refs/heads/main", "refs/tags/v1", "config", "commondir"]
)
def test_refs_that_are_links_fifos_or_folders(
    repo: Repository, make: Callable[[Path, Path], None], name: str
) -> None:
    """Nothing is waited for, and what a link leads to is not read."""
    make(repo.git_dir / name, repo.yard.outside / "secret")
    _both(repo, 0, 1, 2)


@pytest.mark.parametrize(
    "ref",
    ["../../outside/secret", "refs/heads/../../../../outside/secret", "/OUT/secret", "x\x1b[2J"],
)
def test_gitpython_cve_2023_41040_a_ref_that_leaves(repo: Repository, ref: str) -> None:
    text = ref.replace("/OUT", str(repo.yard.outside))
    (repo.git_dir / "HEAD").write_text(f"ref: {text}\n")
    (repo.git_dir / "refs" / "heads" / "main").write_text(f"ref: {text}\n")
    (repo.git_dir / "packed-refs").write_text(f"{'1' * 40} {text}\n{SECRET}\n")
    _both(repo, 0, 1, 2)


def test_configuration_and_hooks_of_the_repository_are_not_obeyed(repo: Repository) -> None:
    pwned = repo.yard.outside / "pwned"
    hostile = f"touch {pwned}"
    config = (
        f"[include]\n\tpath = {repo.yard.outside}/secret\n"
        f"[core]\n\tfsmonitor = {hostile}\n\tsshCommand = {hostile}\n\tpager = {hostile}\n"
        f"\thooksPath = {repo.git_dir}/hooks\n\tworktree = {repo.yard.outside}\n"
        f'[filter "x"]\n\tsmudge = {hostile}\n\tclean = {hostile}\n'
        f"[uploadpack]\n\tpackObjectsHook = {hostile}\n"
        f'[remote "origin"]\n\turl = ext::{hostile}\n\tpromisor = true\n'
        f"[alias]\n\tcat-file = !{hostile}\n[extensions]\n\tpartialClone = origin\n"
    )
    (repo.git_dir / "config").open("a").write(config)
    hooks = repo.git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\n{hostile}\n")
        (hooks / name).chmod(0o755)
    _both(repo, 0, 1, 2)
    assert not pwned.exists()


def test_a_gitfile_that_leads_to_another_repository(repo: Repository) -> None:
    """Such a file is how a linked work tree is made; the pin's commit must be in what it names."""
    private = repo.yard.outside / "private"
    private.mkdir()
    git(private, "init", "-q")
    repo.git_dir.rename(repo.yard.home / "moved.git")
    (repo.at / ".git").write_text(f"gitdir: {private}/.git\n")
    for line in repo.verbs():
        done = repo.yard.run(*line)
        assert done.code in (1, 2), done.text


def test_git_cve_2024_32002_submodules_of_a_commit(repo: Repository) -> None:
    """The entries are carried as entries: nothing is fetched for them, nothing laid out."""
    git(repo.at, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},A/modules/x")
    oid = (
        subprocess.run(
            ["git", "-C", str(repo.at), "hash-object", "-w", "--stdin"],
            input=b".git",
            env=ENV,
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    git(repo.at, "update-index", "--add", "--cacheinfo", f"120000,{oid},a")
    modules = f'[submodule "x"]\n\tpath = A/modules/x\n\turl = {repo.yard.outside}\n'
    (repo.at / ".gitmodules").write_text(modules)
    git(repo.at, "add", ".gitmodules")
    git(repo.at, "commit", "-qm", "hostile")
    commit = git(repo.at, "rev-parse", "HEAD")
    pins = repo.yard.at / "pins.toml"
    pins.write_text(pins.read_text().replace(repo.commit, commit))
    repo.yard.attack("lock", "--pin", "v1.0", code=0)
    repo.yard.attack("apply", "--pin", "v1.0", "--to", str(repo.yard.home / "made"), code=0)
    made = repo.yard.home / "made"
    assert not (made / ".git" / "modules").exists()
    assert not (made / "A" / "modules" / "x" / ".git").exists()
    line = ("import", "--commits", f"{repo.commit}..{commit}", "--from", str(repo.at))
    found = {f["name"] for f in repo.yard.attack(*line, codes=(0, 1))["findings"]}
    assert found
