"""The peers: what each runs to put a whole series on the base tree, and the tree it leaves.

A peer works in a copy of the template repository. Only `commands` are measured; making the copy,
reading the tree's id and cleaning up are not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.measure import NOTHING, Cost, run
from bench.work import Ground, Project, git

Command = tuple[list[str], Path | None]
"""A command line, and the file on its standard input."""


@dataclass(frozen=True)
class Peer:
    """name: what the table calls it. needs: its executable. commands: what is measured. tree: the
    id of what they left. runs: how often it is measured. most: patches above which it is left
    out."""

    name: str
    needs: str
    commands: Callable[[Project, Path], Iterator[Command]]
    tree: Callable[[Path, Mapping[str, str]], str]
    prepare: Callable[[Project, Path, Mapping[str, str]], None] | None = None
    runs: int = 1
    most: int = 500

    @property
    def installed(self) -> bool:
        """Whether it can be measured here."""
        return shutil.which(self.needs) is not None


def once(peer: Peer, ground: Ground, project: Project) -> Cost:
    """What one run on the bare base costs. Raises Failed, Wrong.

    Each run has a fresh copy of the template: objects of the run before would be found again and
    not be written.
    """
    at = ground.at / "peer"
    env = ground.env | {"QUILT_PATCHES": str(project.series)}
    shutil.rmtree(at, ignore_errors=True)
    shutil.copytree(ground.template, at, symlinks=True)
    git(at, env, "update-index", "-q", "--refresh")
    if peer.prepare is not None:
        peer.prepare(project, at, env)
    cost = NOTHING
    for command, stdin in peer.commands(project, at):
        cost += run(command, at, env, stdin)[0]
    project.expect(peer.tree(at, env), peer.name)
    return cost


def _committed(at: Path, env: Mapping[str, str]) -> str:
    return git(at, env, "rev-parse", "HEAD^{tree}")


def _worktree(at: Path, env: Mapping[str, str]) -> str:
    git(at, env, "add", "-A")
    return git(at, env, "write-tree")


def _index(at: Path, env: Mapping[str, str]) -> str:
    return git(at, env, "write-tree")


def _without_debian(at: Path, env: Mapping[str, str]) -> str:
    git(at, env, "rm", "-rq", "--cached", "debian")
    return git(at, env, "write-tree")


def _am(*options: str) -> Callable[[Project, Path], Iterator[Command]]:
    def commands(project: Project, at: Path) -> Iterator[Command]:
        yield ["git", "am", "-q", "--keep-cr", *options, *map(str, project.patches())], None

    return commands


def _quilt(project: Project, at: Path) -> Iterator[Command]:
    yield ["quilt", "push", "-qa", "--fuzz=0"], None


def _apply_loop(project: Project, at: Path) -> Iterator[Command]:
    for patch in project.patches():
        yield ["git", "apply", "--index", str(patch)], None


def _patch_loop(project: Project, at: Path) -> Iterator[Command]:
    for patch in project.patches():
        options = ["-p1", "-s", "-F0", "--batch", "--forward", "--no-backup-if-mismatch"]
        yield ["patch", *options, "-i", str(patch)], None


def _floor(project: Project, at: Path) -> Iterator[Command]:
    yield ["git", "read-tree", "base"], None
    yield ["git", "apply", "--cached", "-"], project.at / "all.patch"
    yield ["git", "write-tree"], None


def _concatenated(project: Project, at: Path, env: Mapping[str, str]) -> None:
    joined = project.at / "all.patch"
    joined.write_bytes(b"".join(path.read_bytes() for path in project.patches()))


def _stg(project: Project, at: Path) -> Iterator[Command]:
    yield ["stg", "import", "-s", str(project.series / "series")], None


def _stg_init(project: Project, at: Path, env: Mapping[str, str]) -> None:
    git(at, env, "checkout", "-q", "-b", "stack")
    run(["stg", "init"], at, env)


def _gbp(project: Project, at: Path) -> Iterator[Command]:
    yield ["gbp", "pq", "import", "--force"], None


def _debian(project: Project, at: Path, env: Mapping[str, str]) -> None:
    """A package of one changelog entry, whose patches are the series."""
    debian = at / "debian"
    shutil.copytree(project.series, debian / "patches")
    (debian / "patches" / "series.lock").unlink(missing_ok=True)
    (debian / "changelog").write_text(
        "bench (1-1) unstable; urgency=low\n\n  * Bench.\n\n"
        " -- Bench <bench@example.invalid>  Mon, 30 Nov 2026 12:00:00 +0000\n"
    )
    (debian / "control").write_text("Source: bench\nMaintainer: Bench <bench@example.invalid>\n")
    (debian / "source").mkdir()
    (debian / "source" / "format").write_text("3.0 (quilt)\n")
    git(at, env, "add", "-A", "-f")
    git(at, env, "commit", "-q", "-m", "debian")


FLOOR = Peer("floor: read-tree, one git apply --cached, write-tree", "git", _floor, _index,
             _concatenated, runs=5, most=10_000)  # fmt: skip
AM = Peer("git am", "git", _am(), _committed, runs=2, most=10_000)
QUILT = Peer("quilt push -a", "quilt", _quilt, _worktree, runs=2)
PEERS = (
    FLOOR,
    AM,
    Peer("git am -3", "git", _am("-3"), _committed),
    QUILT,
    Peer("git apply --index, one at a time", "git", _apply_loop, _index),
    Peer("GNU patch, one at a time", "patch", _patch_loop, _worktree),
    Peer("StGit import -s", "stg", _stg, _committed, _stg_init),
    Peer("gbp pq import", "gbp", _gbp, _without_debian, _debian),
)
