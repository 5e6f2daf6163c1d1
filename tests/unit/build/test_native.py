"""Compiled builds: the environment, the jobs rule, and everything missing named beforehand."""

from __future__ import annotations

import json

import pytest

from patchkit.build.machine import Machine, jobs, number
from patchkit.engine.model import File, MemoryTree
from patchkit.upstreams.building import Fetched, recipe
from patchkit.upstreams.vllm_build import fetched
from tests.conftest import SmallProject

CMAKE = b"""
set(CUTLASS_REVISION "v4.7.1")
if (DEFINED ENV{VLLM_CUTLASS_SRC_DIR})
  FetchContent_Declare(cutlass SOURCE_DIR ${VLLM_CUTLASS_SRC_DIR})
else()
  FetchContent_Declare(
    cutlass
    GIT_REPOSITORY https://github.com/nvidia/cutlass.git
    # GIT_TAG of another day
    GIT_TAG ${CUTLASS_REVISION}
  )
endif()
"""
OTHER = b"""
  set(_REPO "https://github.com/x/deep.git")
  set(_TAG "%s")
  FetchContent_Declare(deepgemm GIT_REPOSITORY "${_REPO}" GIT_TAG "${_TAG}")
""" % (b"e" * 40)


@pytest.mark.parametrize(
    ("cores", "memory", "expected"),
    [(16, 128.0, 16), (16, 31.9, 7), (2, 3.0, 1), (64, 0.5, 1)],
)
def test_one_job_a_core_as_far_as_memory_goes(cores: int, memory: float, expected: int) -> None:
    assert jobs(cores, memory, 4) == expected


def test_what_is_fetched_is_read_in_the_tree_and_tags_are_told_from_commits() -> None:
    files = {"CMakeLists.txt": CMAKE, "cmake/external_projects/deepgemm.cmake": OTHER}
    tree = MemoryTree({path: File(data) for path, data in files.items()})
    found = fetched(tree, files, "cuda")
    assert [(f.name, f.ref, f.fixed) for f in found] == [
        ("cutlass", "v4.7.1", False),
        ("deepgemm", "e" * 40, True),
    ]
    assert found[0].variable == "VLLM_CUTLASS_SRC_DIR"
    assert found[1].address == "https://github.com/x/deep.git"
    assert fetched(tree, files, "cpu") == ()


def test_the_recipe_keeps_out_what_makes_objects_differ() -> None:
    made = recipe("vllm")
    cuda = made.native["cuda"]
    assert cuda["NVCC_APPEND_FLAGS"] == "-objtemp"
    assert cuda["CCACHE_DISABLE"] == cuda["VLLM_DISABLE_SCCACHE"] == "1"
    assert cuda["VLLM_REQUIRE_RUST_FRONTEND"] == "1"
    assert "FULLY_DISCONNECTED=ON" in cuda["CMAKE_ARGS"]
    assert made.at.startswith("/")
    for source in made.stubs.values():
        compile(source, "stub", "exec")


def test_versions_are_compared_as_numbers() -> None:
    assert number("12.10") > number("12.9.1")
    assert number("none") == (0, 0, 0)


def test_a_machine_that_lacks_everything_is_told_all_of_it_at_once() -> None:
    from patchkit.build import native

    nothing = Machine(2, 1.0, 1.0)
    made = recipe("vllm")
    found = [
        *native._compilers("cuda", made, nothing),
        *native._requirements(b'[build-system]\nrequires=["torch == 2.13.0"]', nothing, "python3"),
        *native._rust(b'[toolchain]\nchannel = "1.95"\n', nothing),
        *native._room(made, nothing),
        *native._sources((Fetched("cutlass", "https://x.invalid/c", "v4.7.1"),), "/nowhere"),
    ]
    text = "\n".join(f"{f.message} {f.expected}" for f in found if not f.note)
    for word in ("compiler", "toolkit", "torch", "Rust", "memory", "disk", "cutlass"):
        assert word in text, word
    notes = "\n".join(f.message for f in found if f.note)
    assert "driver" in "\n".join(f.expected for f in found if f.note)
    assert "tag, which may be moved" in notes


def test_doctor_says_what_there_is_and_refuses_an_unknown_device(locked: SmallProject) -> None:
    fine = locked.run("doctor", "--json")
    assert fine.code == 0, fine.text
    assert {"python", "git", "cache"} <= json.loads(fine.out).keys()
    assert locked.run("doctor", "--build", "toaster").code == 2


def test_a_compiled_build_of_a_plain_project_is_refused_by_name(locked: SmallProject) -> None:
    line = ("build", "--pin", "v1.0", "--source", str(locked.base), "--how", "cuda")
    done = locked.run(*line)
    assert done.code == 3, done.text
    assert "nothing is known of a cuda build of engine" in done.err
