"""How upstreams are built: what their build scripts ask for, one recipe a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from patchkit.engine.model import Tree

RECIPES = {"vllm": "patchkit.upstreams.vllm_build"}
"""Kind -> module with a RECIPE; other kinds have the plain one."""

CONFIGURED = "configured.json"
"""In a build folder: the tree and the device that it is configured for, and the list of commands
that compile it."""


@dataclass(frozen=True)
class Fetched:
    """A source that a native build fetches.

    name: what the build calls it. address: its repository. ref: what is asked of it; only 40 hex
    digits can be kept to, a tag may be moved. variable: the environment variable that names a
    folder to take instead, "" where there is none. where: the file that says so. submodules: those
    that are taken, None for all, and theirs.
    """

    name: str
    address: str
    ref: str
    variable: str = ""
    where: str = ""
    submodules: tuple[str, ...] | None = None

    @property
    def folder(self) -> str:
        """Name of the folder that CMake's FetchContent looks for."""
        return f"{self.name.lower()}-src"

    @property
    def fixed(self) -> bool:
        """Whether the ref is a commit id."""
        return len(self.ref) == 40 and not set(self.ref) - set("0123456789abcdef")


def _none(tree: Tree, paths: Iterable[str], device: str, arch: str) -> tuple[Fetched, ...]:
    return ()


@dataclass(frozen=True)
class Recipe:
    """version_variable: the environment variable that sets the exact version. empty: variables of
    a build without compiled parts; None where there is no such build. stubs: modules that stand
    in, while building, for packages that the build script only asks for their version: path ->
    source. native: device -> variables of a compiled build. arches: TORCH_CUDA_ARCH_LIST of the
    official wheels, by architecture. cuda: CUDA of the official wheel. pythons: those
    that an empty wheel is built for. gcc: device -> the oldest
    compiler. memory: GiB of one compile job. disk: GiB of a build. at: the one folder in which a
    build stands, since objects hold it. fetched: (tree, its paths, device, architecture) -> what is
    fetched. crates: the Cargo.toml whose crates are fetched, "" for none. configure: what of the
    build script runs CMake and then compiles."""

    version_variable: str = "SETUPTOOLS_SCM_PRETEND_VERSION"
    empty: Mapping[str, str] | None = field(default_factory=dict)
    stubs: Mapping[str, str] = field(default_factory=dict)
    native: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    arches: Mapping[str, str] = field(default_factory=dict)
    cuda: str = ""
    pythons: tuple[str, ...] = ("3.11",)
    gcc: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    memory: int = 4
    disk: int = 20
    at: str = "/workspace/build"
    fetched: Callable[[Tree, Iterable[str], str, str], tuple[Fetched, ...]] = _none
    crates: str = ""
    configure: tuple[str, ...] = ("setup.py", "build_ext")


PLAIN = Recipe()


def recipe(kind: str) -> Recipe:
    """The recipe of a kind of upstream."""
    module = RECIPES.get(kind)
    return cast("Recipe", import_module(module).RECIPE) if module is not None else PLAIN
