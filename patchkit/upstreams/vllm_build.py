"""How vLLM is built, 0.29 to 0.33: read in its setup.py, envs.py, CMake files and Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchkit.engine.model import Tree
from patchkit.upstreams.building import Fetched, Recipe

CPU_FILE = "cmake/cpu_extension.cmake"
_SET = re.compile(r'\bset\s*\(\s*(\w+)\s+"?([^\s")]+)"?\s*\)', re.I)
_DECLARE = re.compile(r"\bFetchContent_(?:Declare|Populate)\s*\(\s*([\w-]+)", re.I)
_ENV = re.compile(r"\bDEFINED\s+ENV\{(\w+)\}")
_GIT = re.compile(
    r'GIT_REPOSITORY\s+"?([^\s"]+)"?(?:(?!GIT_REPOSITORY).)*?GIT_TAG\s+"?([^\s")]+)', re.S
)
_SUBMODULES = re.compile(r'GIT_SUBMODULES((?:\s+"?[^\s")A-Z][^\s")]*"?)+)')
_BRANCH = re.compile(r"(?mi)^[ \t]*(if|elseif|else|endif)[ \t]*\((.*)\)")
_ARM = "ASIMD_FOUND"
_COMMENT = re.compile(r"(?m)^\s*#.*$")


def fetched(tree: Tree, paths: Iterable[str], device: str, arch: str) -> tuple[Fetched, ...]:
    """What CMake fetches for `device` (cuda or cpu) on `arch`, read in the tree's own files."""
    files = [CPU_FILE] if device == "cpu" else ["CMakeLists.txt"]
    if device != "cpu":
        files += sorted(p for p in paths if p.startswith("cmake/external_projects/"))
    out: dict[str, Fetched] = {}
    for path in files:
        file = tree.get(path)
        if file is None:
            continue
        text = _COMMENT.sub("", file.data.decode("utf-8", "replace"))
        values = dict(_SET.findall(text))
        for found in _GIT.finditer(text):
            address, ref = (_value(part, values) for part in found.groups())
            before = text[: found.start()]
            if (arch == "aarch64") not in _architectures(before):
                continue
            names, variables = _DECLARE.findall(before), _ENV.findall(before)
            name = names[-1] if names else address.rpartition("/")[2].removesuffix(".git")
            variable = variables[-1] if variables else ""
            # What follows up to the end of the call: which submodules, where not all.
            named = _SUBMODULES.search(text[found.end() :].partition(")")[0])
            only = tuple(p.strip('"') for p in named[1].split()) if named else None
            out[name] = Fetched(name, address, ref, variable, path, only)
    return tuple(out[name] for name in sorted(out))


def _architectures(before: str) -> set[bool]:
    """Whether what follows `before` is reached on ARM, elsewhere, or on both."""
    within: list[set[bool]] = []
    for word, condition in _BRANCH.findall(before):
        last = within.pop() if word.lower() != "if" and within else {True, False}
        if word.lower() in ("if", "elseif"):
            arm = _ARM in condition and " OR " not in condition
            within.append({True} if arm else {True, False})
        elif word.lower() == "else":
            within.append({False} if last == {True} else {True, False})
    return set.intersection({True, False}, *within)


def _value(text: str, values: dict[str, str]) -> str:
    found = re.fullmatch(r"\$\{(\w+)\}", text)
    return values.get(found[1], text) if found else text


_COMPILED = {
    # -O2 without -g: RelWithDebInfo writes the build folder's path into every object.
    "CMAKE_BUILD_TYPE": "Release",
    # An object from a cache is one of another compiler run.
    "VLLM_DISABLE_SCCACHE": "1",
    "CCACHE_DISABLE": "1",
    # Without it a missing Rust toolchain leaves vllm-rs out, with exit code 0.
    "VLLM_REQUIRE_RUST_FRONTEND": "1",
    "CARGO_NET_OFFLINE": "true",
    "CMAKE_ARGS": "-DFETCHCONTENT_FULLY_DISCONNECTED=ON",
}

RECIPE = Recipe(
    version_variable="VLLM_VERSION_OVERRIDE",
    empty={"VLLM_TARGET_DEVICE": "empty"},
    stubs={
        "torch/__init__.py": "__version__ = '0'\n\n\nclass version:\n"
        "    cuda = None\n    hip = None\n    xpu = None\n",
        "torch/utils/__init__.py": "",
        "torch/utils/cpp_extension.py": "CUDA_HOME = None\nROCM_HOME = None\n",
    },
    native={
        "cuda": {
            **_COMPILED,
            "VLLM_TARGET_DEVICE": "cuda",
            # nvcc names symbols after its process id; this names them after the object.
            "NVCC_APPEND_FLAGS": "-objtemp",
            "NVCC_THREADS": "1",
        },
        "cpu": {**_COMPILED, "VLLM_TARGET_DEVICE": "cpu"},
    },
    arches={"x86_64": "7.5 8.0 8.6 8.9 9.0 10.0 12.0", "aarch64": "8.7 8.9 9.0 10.0+PTX 12.0"},
    cuda="13.0",
    crates="rust/Cargo.toml",
    gcc={"cuda": (11, 0), "cpu": (12, 3)},
    memory=4,
    disk=60,
    fetched=fetched,
)
