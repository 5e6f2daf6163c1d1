"""The ground a benchmark stands on: the real base tree as a git repository, and projects of ours.

Everything stands in one scratch folder and is made anew in each run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.measure import run
from bench.series import Made, blob_id

ROOT = Path(__file__).resolve().parents[1]
PIN = "v0.30.0"
QUIET = {
    "PATH": os.environ["PATH"],
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "DEBFULLNAME": "Bench",
    "DEBEMAIL": "bench@example.invalid",
    **{f"GIT_{who}_NAME": "Bench" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "bench@example.invalid" for who in ("AUTHOR", "COMMITTER")},
    "GIT_COMMITTER_DATE": "@1700000000 +0000",
}
CONFIG = (("gc.auto", "0"), ("maintenance.auto", "false"), ("core.safecrlf", "false"))


class Wrong(Exception):
    """What was measured did not do its work."""


@dataclass(frozen=True)
class Ground:
    """at: the scratch folder. template: the base tree in a git repository, one commit on branch
    `base`. files: the base's regular files. tree: the base tree's id. cache: a cache of patchkit
    that holds the base and nothing else."""

    at: Path
    template: Path
    files: Mapping[str, bytes]
    tree: str
    cache: Path

    @property
    def env(self) -> dict[str, str]:
        """For peers: nobody's configuration but the scratch folder's."""
        return QUIET | {"HOME": str(self.at / "home")}


@dataclass(frozen=True)
class Project:
    """A synthetic series as a project of ours, locked, and what it must give."""

    at: Path
    tree: str

    @property
    def series(self) -> Path:
        """The series folder: a quilt series as it stands."""
        return self.at / "series" / PIN

    def patches(self) -> list[Path]:
        """The patch files in order."""
        return [self.series / name for name in (self.series / "series").read_text().split()]

    def expect(self, tree: str, who: str) -> None:
        """Raises Wrong where `who` left another tree than the series must give."""
        if tree != self.tree:
            raise Wrong(f"{who} left tree {tree}, and the series must give {self.tree}")


def git(at: Path, env: Mapping[str, str], *args: str, input: bytes = b"") -> str:
    """One git command outside the measurements."""
    done = subprocess.run(
        ["git", *args], cwd=at, env=dict(env), input=input, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def patchkit() -> list[str]:
    """The command as it is installed beside this Python."""
    beside = Path(sys.executable).with_name("patchkit")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "patchkit"]


def our_env(cache: Path) -> dict[str, str]:
    """For patchkit: the caller's surroundings, and a cache of the benchmark's own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return kept | {"PATCHKIT_CACHE": str(cache)}


def lay(at: Path) -> Ground:
    """Unpack the pinned sdist without what its build made, and import it into a new cache."""
    from patchkit.series.pins import load_pins
    from patchkit.source.pinned import fetch_pinned, sdist_of
    from patchkit.upstreams import known

    pins = load_pins((ROOT / "pins.toml").read_bytes())
    pin = pins.pin(PIN)
    about = known(pins.upstream_of(pin))
    archive = fetch_pinned(pins.upstream_of(pin), pin, sdist_of(pin)[0])
    cache, template = at / "cache", at / "template"
    (cache / "downloads").mkdir(parents=True)
    (at / "home").mkdir()
    shutil.copy(archive, cache / "downloads")
    template.mkdir()
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is None or about.generated(path, data := stream.read()):
                continue
            target = template / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755 if member.mode & 0o100 else 0o644)
            if not member.mode & 0o100:
                files[path] = data
    ground = Ground(at, template, files, "", cache)
    git(template, ground.env, "init", "-q", "-b", "base")
    for key, value in CONFIG:
        git(template, ground.env, "config", key, value)
    git(template, ground.env, "add", "-A", "-f")
    git(template, ground.env, "commit", "-q", "-m", "base", "--date=@1700000000 +0000")
    (template / ".git/info/exclude").write_text("/.pc/\n")
    git(template, ground.env, "repack", "-adq")  # as after a clone
    tree = git(template, ground.env, "rev-parse", "HEAD^{tree}")
    shutil.copy(ROOT / "pins.toml", at / "pins.toml")
    run([*patchkit(), "-C", str(at), "fetch", "--pin", PIN], at, our_env(cache))
    return Ground(at, template, files, tree, cache)


def project(ground: Ground, name: str, made: Made) -> Project:
    """Write a series, lock it, and say by git alone which tree it must give."""
    at = ground.at / name
    series = at / "series" / PIN
    series.mkdir(parents=True)
    shutil.copy(ROOT / "pins.toml", at / "pins.toml")
    for patch, data in made.patches:
        (series / patch).write_bytes(data)
    (series / "series").write_text("".join(f"{patch}\n" for patch, _ in made.patches))
    lock = ground.at / f"{name}-lock-cache"
    shutil.copytree(ground.cache, lock)
    run([*patchkit(), "-C", str(at), "lock", "--pin", PIN], at, our_env(lock))
    shutil.rmtree(lock)
    return Project(at, expected(ground, made))


def expected(ground: Ground, made: Made) -> str:
    """The tree of the base with the generator's own final files in it: no applier is asked."""
    index = {"GIT_INDEX_FILE": str(ground.at / f"index-{os.getpid()}")}
    env = ground.env | index
    git(ground.template, env, "read-tree", ground.tree)
    stage = ground.at / "blobs"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    names = []
    for data in made.files.values():
        path = stage / hashlib.sha1(data).hexdigest()
        path.write_bytes(data)
        names.append(str(path))
    listed = "\n".join(names).encode() + b"\n"
    git(ground.template, env, "hash-object", "-w", "--no-filters", "--stdin-paths", input=listed)
    rows = "".join(
        f"100644 {blob_id(data).decode()}\t{path}\n" for path, data in made.files.items()
    )
    git(ground.template, env, "update-index", "--add", "--index-info", input=rows.encode())
    return git(ground.template, env, "write-tree")
