"""A tiny project of kind plain whose base is a folder beside it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchkit.authoring.commits import refresh_commits
from patchkit.authoring.edit import Begun, begin_edit, begin_new
from patchkit.authoring.refresh import refresh
from patchkit.authoring.session import Session, session
from patchkit.authoring.standing import Standing
from patchkit.authoring.when import when
from patchkit.authoring.workplace import read_point, write_place
from patchkit.check.pin import check_pin
from patchkit.derive.base import open_bases
from patchkit.derive.project import find
from patchkit.errors import Finding

AUTHOR = "A U Thor <author@example.org>"
MOMENT = when("2031-01-31")
LINES = [f"line {n}\n" for n in range(40)]
FILES = {
    "engine/lanes.py": "".join(LINES),
    "engine/gates.py": "".join(f"gate {n}\n" for n in range(30)),
    "engine/__init__.py": "",
    "README.md": "# engine\n",
}


@dataclass
class Bench:
    """The project in `root`, its base in `source`."""

    root: Path
    source: Path
    pin: str = "v1"

    @property
    def series(self) -> Path:
        return self.root / "series" / self.pin

    @property
    def tree(self) -> Path:
        return self.root / "build" / f"edit-{self.pin}"

    @contextmanager
    def session(self) -> Iterator[tuple[Session, Standing]]:
        with session(self.root) as run:
            yield run, run.standing(run.pin(self.pin))

    def new(self, name: str, **options: object) -> Begun:
        with self.session() as (_, standing):
            options.setdefault("author", AUTHOR)
            return begin_new(standing, name, MOMENT, **options)  # type: ignore[arg-type]

    def edit(self, name: str | None = None) -> Begun:
        with self.session() as (_, standing):
            return begin_edit(standing, name)

    def refresh(self, **options: object) -> dict[str, str]:
        """Refresh from the work tree; the state of each patch."""
        with self.session() as (run, standing):
            point = read_point(str(self.tree))
            assert point is not None
            done = refresh(standing, point, str(self.tree), MOMENT, **options)  # type: ignore[arg-type]
            run.commit(done.ready, "refresh")
            write_place(run.standing(standing.pin), str(self.tree), done.count, done.patch)
            return {row.patch: row.state for row in done.ready.rows}

    def change(self, path: str, old: str, new: str) -> None:
        at = self.tree / path
        text = at.read_text()
        assert old in text
        at.write_text(text.replace(old, new, 1))

    def add_patch(self, name: str, *edits: tuple[str, str, str], **options: object) -> None:
        """A patch at the end (or where the options say), made as a person does."""
        self.new(name, **options)
        for edit in edits:
            self.change(*edit)
        self.refresh()

    def git(self, *args: str, stdin: str = "", **env: str) -> str:
        """git as a person uses it in the work tree; its output."""
        who = {"GIT_AUTHOR_NAME": "P Erson", "GIT_AUTHOR_EMAIL": "p@example.org"}
        who |= {"GIT_COMMITTER_NAME": "P Erson", "GIT_COMMITTER_EMAIL": "p@example.org"}
        who |= {"GIT_AUTHOR_DATE": "2031-02-01T00:00:00 +0000", "GIT_EDITOR": "true"}
        done = subprocess.run(
            ["git", *args],
            cwd=self.tree,
            env={**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, **env},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def from_commits(self) -> dict[str, str]:
        """Take the commits of the work tree back; the state of each patch."""
        with self.session() as (run, standing):
            point = read_point(str(self.tree))
            assert point is not None
            done = refresh_commits(standing, point, str(self.tree), MOMENT)
            run.commit(done.ready, "refresh")
            write_place(run.standing(standing.pin), str(self.tree), done.count, done.patch)
            return {row.patch: row.state for row in done.ready.rows}

    def check(self) -> list[Finding]:
        """What check finds, notes left out."""
        project = find(self.root)
        with open_bases(project) as bases:
            report = check_pin(project, project.pins.pin(self.pin), bases)
            return [f for f in report.findings if not f.note]

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the project but the work tree."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and "build" not in path.relative_to(self.root).parts
        }

    def patches(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted(self.series.glob("*.patch"))}


def make_bench(at: Path, files: dict[str, str] | None = None) -> Bench:
    source = at / "upstream"
    for path, text in (files or FILES).items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    root = at / "project"
    (root / "series" / "v1").mkdir(parents=True)
    (root / "pins.toml").write_text(
        '[upstreams.engine]\nkind = "plain"\nsource = "../upstream"\n\n'
        '[pins.v1]\nupstream = "engine"\n'
    )
    return Bench(root, source)
