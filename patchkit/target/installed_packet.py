"""A locked selection of patches for one distribution: what a command or a bundle applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchkit.series.lockfile import Chain, Lock
from patchkit.target.installed_state import State, series_digest

if TYPE_CHECKING:
    from patchkit.engine.chain import Step  # the whole engine: checking needs none of it

_COMPILED = (
    *(".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".pxd", ".rs", ".S", ".cmake"),
    *("/CMakeLists.txt", "/setup.py", "/setup.cfg", "/pyproject.toml", "/Cargo.toml"),
    *("/meson.build", "/Makefile", "/MANIFEST.in"),
)
_COMPILED_FOLDERS = ("csrc/", "cmake/", "rust/")


def compiled(path: str) -> bool:
    """Whether a path of an unknown project is a native source or a build file, by its name."""
    return f"/{path}".endswith(_COMPILED) or path.startswith(_COMPILED_FOLDERS)


def excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of the --exclude patterns fits; `*` takes slashes too, as in git apply."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Packet:
    """What is to be applied.

    dist: name of the distribution. package: its import name; root: folder of the upstream's tree
    that holds it. version: the pinned release, "" where it is not known. stack: None for the
    whole series. lock: at least the chain of that stack. steps: every patch of the series, in
    order, unselected ones too: their lines count. exclude: patterns of tree paths to leave out.
    native: whether a tree path takes effect only when compiled. whole_lock: whether the lock
    speaks of every path of the series, those that other stacks touch too.
    """

    dist: str
    package: str
    root: str
    version: str
    stack: str | None
    lock: Lock
    steps: tuple[Step, ...]
    exclude: tuple[str, ...] = ()
    native: Callable[[str], bool] = compiled
    whole_lock: bool = True

    @property
    def chain(self) -> Chain:
        """The locked chain of the selection."""
        return self.lock.chain(self.stack)

    @property
    def digest(self) -> str:
        """The series digest of the selection."""
        return series_digest(self.lock, self.chain.patches)

    @property
    def title(self) -> str:
        """Which stack of which pin, for people."""
        stack = "the whole series" if self.stack is None else f"stack {self.stack}"
        return f"{stack} of {self.lock.pin.name}"

    def inside(self, path: str) -> bool:
        """Whether an installed package can hold this tree path."""
        lead = f"{self.root}/" if self.root else ""
        top = self.package.replace(".", "/")
        return path.startswith(f"{lead}{top}/") or path == f"{lead}{top}.py"

    def wanted(self, path: str) -> bool:
        """Whether this tree path is looked at: inside, and not excluded."""
        return self.inside(path) and not excluded(path, self.exclude)

    def paths(self) -> list[str]:
        """The tree paths of the chain that are looked at, sorted."""
        return sorted(path for path in self.chain.paths if self.wanted(path))

    def site_path(self, path: str) -> str:
        """A tree path as it is below the site folder."""
        return path.removeprefix(f"{self.root}/") if self.root else path

    def is_state(self, state: State) -> bool:
        """Whether `state` is what applying this leaves."""
        return (
            state.lock.pin.name == self.lock.pin.name
            and state.stack == self.stack
            and state.digest == self.digest
            and state.exclude == self.exclude
        )
