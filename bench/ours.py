"""What we measure of patchkit: applying for the first time, after a change, and once more."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from bench.measure import Cost, run
from bench.work import PIN, Ground, Project, Wrong, git, our_env, patchkit

FIRST = "patchkit apply --tree-only"
CHANGED = f"{FIRST}, last patch changed"
UNCHANGED = f"{FIRST}, unchanged"
VERSION, HELP = "patchkit --version", "patchkit --help"
TYPER, BARE = "python -c 'import typer'", "python -c pass"


class Ours:
    """One series and the same with its last patch changed, each run on a cache of its own."""

    def __init__(self, ground: Ground, project: Project, changed: Project | None = None) -> None:
        self.ground, self.project, self.changed = ground, project, changed
        self._cache = ground.at / "our-cache"

    def first(self) -> Cost:
        """With a cache that holds the base alone."""
        self._fresh()
        return self._apply(self.project)

    def last_changed(self) -> Cost:
        """With a cache that has seen the series before its last patch was changed."""
        assert self.changed is not None
        self._fresh()
        self._apply(self.project)
        return self._apply(self.changed)

    def unchanged(self) -> Cost:
        """With a cache that has seen this very series."""
        self._fresh()
        self._apply(self.project)
        return self._apply(self.project)

    def commits(self) -> int:
        """How many commits the store holds for the series. Raises Wrong where it is not one a
        patch and one for the base."""
        self._fresh()
        self._apply(self.project)
        store, env = self._cache / "store-1.git", self.ground.env
        said = git(store, env, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
        found, wanted = said.split().count("commit"), len(self.project.patches()) + 1
        if found != wanted:
            raise Wrong(f"{found} commits in the store, not {wanted}")
        return found

    def _fresh(self) -> None:
        shutil.rmtree(self._cache, ignore_errors=True)
        # patchkit replaces files and never writes into them, so links are as good as copies.
        shutil.copytree(self.ground.cache, self._cache, copy_function=os.link)

    def _apply(self, project: Project) -> Cost:
        command = [*patchkit(), "-C", str(project.at), "apply", "--pin", PIN, "--tree-only"]
        cost, said = run(command, project.at, our_env(self._cache))
        project.expect(said.split()[-1], "patchkit")
        return cost


def version(at: Path) -> Cost:
    """`patchkit --version`."""
    return run([*patchkit(), "--version"], at, our_env(at))[0]


def help_text(at: Path) -> Cost:
    """`patchkit --help`."""
    return run([*patchkit(), "--help"], at, our_env(at))[0]


def import_typer(at: Path) -> Cost:
    """Loading the library that our command line is made with, by the same Python."""
    return run([sys.executable, "-c", "import typer"], at, our_env(at))[0]


def bare_python(at: Path) -> Cost:
    """A Python that does nothing."""
    return run([sys.executable, "-c", "pass"], at, our_env(at))[0]
