"""What is known of vLLM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchkit.engine.model import File, Tree
from patchkit.errors import Finding, Where
from patchkit.series.pins import Upstream
from patchkit.upstreams.plain import NATIVE
from patchkit.upstreams.proving import Proving
from patchkit.upstreams.setuptools_files import commit_in, made_by_setuptools, version_in

VERSION_FILE = "vllm/_version.py"
"""Written by setuptools-scm and ignored by vLLM's .gitignore; it names the commit."""

USUAL = Upstream("vllm", "vllm", git="https://github.com/vllm-project/vllm.git", pypi="vllm")
"""The table of pins.toml that `patchkit init --upstream vllm` writes."""

PROVING = Proving(
    environment={
        "VLLM_TARGET_DEVICE": "cpu",  # else vLLM finds no platform
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    },
    # PyPI's torchvision is built for CUDA: beside a CPU torch two of its operators are missing,
    # and its import dies of registering fakes for them.
    prelude="""
import torch
library = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, name):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
""",
    nvcc=(
        *("-std=c++17", "-Icsrc", "-DUSE_CUDA", "--expt-relaxed-constexpr"),
        *("-static-global-template-stub=false", "-diag-suppress", "20012,177,186"),
        "-DTORCH_TARGET_VERSION=0x020B000000000000ULL",
    ),
    # torch_utils.h wants only the handle's type.
    headers={"cublas_v2.h": "typedef struct cublasContext* cublasHandle_t;\n"},
)
"""How its code runs on a machine without a GPU, and without its compiled extensions."""

_NATIVE_FOLDERS = ("csrc/", "cmake/", "rust/")
_NATIVE_FILES = frozenset(
    ("CMakeLists.txt", "setup.py", "pyproject.toml", "build_rust.sh", "rust-toolchain.toml")
)
_BUILD_FILES = ("CMakeLists.txt", "cmake/cpu_extension.cmake")
_SOURCE = re.compile(
    rb"""(?:\$\{CMAKE(?:_CURRENT)?_SOURCE_DIR\}/|(?<=[\s"(]))"""
    rb"""(csrc/[A-Za-z0-9_./-]+\.(?:cu|cuh|cpp|cc|c|h|py))(?=[\s")]|$)"""
)


@dataclass(frozen=True)
class Vllm:
    """The facts of vLLM's repository and sdist, 0.29 to 0.33."""

    package: str = "vllm"
    root: str = ""
    kind: str = "vllm"
    rules: int = 1

    def generated(self, path: str, data: bytes = b"") -> bool:
        return path == VERSION_FILE or made_by_setuptools(path, data)

    def version_of(self, files: Mapping[str, File]) -> str | None:
        return version_in(files)

    def commit_of(self, files: Mapping[str, File]) -> str | None:
        file = files.get(VERSION_FILE)
        return commit_in((file,)) if file is not None else None

    def native(self, path: str) -> bool:
        return path in _NATIVE_FILES or path.startswith(_NATIVE_FOLDERS) or path.endswith(NATIVE)

    def outside_package(self, path: str) -> bool:
        return not path.startswith(f"{self.package}/")

    def gaps(self, tree: Tree) -> tuple[Finding, ...]:
        """Sources and generator scripts below csrc/ that CMake names and the tree lacks."""
        return tuple(
            Finding(
                "sdist-gap",
                f"the source lacks a file that {build_file}:{line} names",
                Where(file=path),
                expected=path,
                found="no such file",
                next="--source git, where what it belongs to is to be compiled",
                note=True,
            )
            for build_file, line, path in _named_sources(tree)
            if tree.get(path) is None
        )


def _named_sources(tree: Tree) -> Iterator[tuple[str, int, str]]:
    """Build file, line and path of each source that is named as a whole; each path once."""
    seen: set[str] = set()
    for build_file in _BUILD_FILES:
        file = tree.get(build_file)
        if file is None:
            continue
        for number, text in enumerate(file.data.split(b"\n"), 1):
            for found in _SOURCE.finditer(text.split(b"#", 1)[0]):
                path = found[1].decode("ascii")
                if path not in seen:
                    seen.add(path)
                    yield build_file, number, path


def describe(upstream: Upstream) -> Vllm:
    """What is known of vLLM, whatever else `upstream`'s table says."""
    return Vllm()
