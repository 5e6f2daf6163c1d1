"""Compiled builds: the environment, the jobs rule, and everything missing named beforehand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from patchkit.build import lacking, toolkit
from patchkit.build.basewheel import machine
from patchkit.build.environment import list_for, listed, place
from patchkit.build.machine import Machine, jobs, look, number
from patchkit.engine.model import File, MemoryTree
from patchkit.errors import EnvironmentFault
from patchkit.upstreams.building import recipe
from patchkit.upstreams.vllm_build import CPU_FILE, fetched
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
  FetchContent_Declare(deepgemm GIT_REPOSITORY "${_REPO}" GIT_TAG "${_TAG}"
    GIT_SUBMODULES "third/a" third/b
    GIT_PROGRESS TRUE)
""" % (b"e" * 40)
ARMED = b"""
if (ENABLE_X86_ISA OR (ASIMD_FOUND AND NOT APPLE) OR POWER9_FOUND)
    if (ASIMD_FOUND AND NOT APPLE)
        if(DEFINED ENV{ACL_ROOT_DIR})
        else()
            FetchContent_Populate(acl GIT_REPOSITORY https://x.invalid/acl.git GIT_TAG v52)
        endif()
    endif()
    if(ASIMD_FOUND)
        FetchContent_Declare(oneDNN GIT_REPOSITORY https://x.invalid/dnn.git GIT_TAG %s)
    else()
        FetchContent_Declare(oneDNN GIT_REPOSITORY https://x.invalid/dnn.git GIT_TAG v3.13)
    endif()
endif()
""" % (b"9" * 40)


@pytest.mark.parametrize(
    ("cores", "memory", "expected"),
    [(16, 128.0, 16), (16, 31.9, 7), (2, 3.0, 1), (64, 0.5, 1)],
)
def test_one_job_a_core_as_far_as_memory_goes(cores: int, memory: float, expected: int) -> None:
    assert jobs(cores, memory, 4) == expected


def test_what_is_fetched_is_read_in_the_tree_and_tags_are_told_from_commits() -> None:
    files = {"CMakeLists.txt": CMAKE, "cmake/external_projects/deepgemm.cmake": OTHER}
    tree = MemoryTree({path: File(data) for path, data in files.items()})
    found = fetched(tree, files, "cuda", "x86_64")
    assert [(f.name, f.ref, f.fixed, f.submodules) for f in found] == [
        ("cutlass", "v4.7.1", False, None),
        ("deepgemm", "e" * 40, True, ("third/a", "third/b")),
    ]
    assert found[0].variable == "VLLM_CUTLASS_SRC_DIR"
    assert found[1].address == "https://github.com/x/deep.git"
    assert fetched(tree, files, "cpu", "x86_64") == ()


def test_what_is_fetched_may_depend_on_the_architecture() -> None:
    tree = MemoryTree({CPU_FILE: File(ARMED)})
    arm, other = (fetched(tree, [CPU_FILE], "cpu", arch) for arch in ("aarch64", "x86_64"))
    assert [(f.name, f.ref) for f in arm] == [("acl", "v52"), ("oneDNN", "9" * 40)]
    assert [(f.name, f.ref) for f in other] == [("oneDNN", "v3.13")]
    assert other[0].folder == "onednn-src"


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
    nothing = Machine(2, 1.0, 1.0)
    made = recipe("vllm")
    found = [
        *lacking.compilers("cuda", made, nothing, "python3"),
        *lacking.compilers("cpu", made, nothing, None),
        *lacking.requirements(PROJECT, {}, "python3"),
        *lacking.rust(b'[toolchain]\nchannel = "1.95"\n', nothing),
        *lacking.room(made, nothing),
    ]
    text = "\n".join(f"{f.message} {f.expected}" for f in found if not f.note)
    for word in ("compiler", "toolkit", "torch", "Rust", "memory", "disk", "numa"):
        assert word in text, word
    assert "driver" in "\n".join(f.expected for f in found if f.note)


PROJECT = (
    b'[build-system]\nrequires=["torch == 2.13.0", "cmake>=3.26.1", "wheel", '
    b"\"seldom; python_version < '3'\"]"
)


@pytest.mark.parametrize(
    ("have", "found"),
    [
        (("stable-x86_64-unknown-linux-gnu",), ""),
        (("1.9-x86_64-unknown-linux-gnu", "1.950.0-x"), ""),
        (("stable-x", "1.95.0-x86_64-unknown-linux-gnu"), "1.95.0-x86_64-unknown-linux-gnu"),
        (("1.95-x86_64-unknown-linux-gnu",), "1.95-x86_64-unknown-linux-gnu"),
    ],
)
def test_the_toolchain_is_named_as_rustup_has_it(have: tuple[str, ...], found: str) -> None:
    asked = b'[toolchain]\nchannel = "1.95"\n'
    machine = Machine(2, 8.0, 8.0, {"cargo": "1.95.0"}, toolchains=have)
    assert lacking.toolchain_for(asked, machine) == found
    assert bool(lacking.rust(asked, machine)) == (not found)
    assert lacking.toolchain_for(b"", machine) == ""


def test_a_list_that_is_there_fits_what_the_release_asks_for() -> None:
    assert lacking.torch_of(PROJECT) == "2.13.0"
    assert lacking.torch_of(b"[build-system]") == ""
    assert list_for("cuda", "1.0") is None
    for device, torch in (("cuda", "2.13.0"), ("cuda", "2.14.0"), ("cpu", "2.13.0")):
        listing = list_for(device, torch)
        assert listing is not None
        have = listed(listing)
        assert lacking.requirements(PROJECT.replace(b"2.13.0", torch.encode()), have, "x") == []
        lines = listing.read_text().splitlines()
        names = [i for i, line in enumerate(lines) if "==" in line]
        for i in names:
            assert lines[i].endswith("\\"), lines[i]
            assert lines[i + 1].startswith("    --hash=sha256:"), lines[i]


def test_the_toolkit_is_one_release_and_torchs() -> None:
    listing = list_for("cuda", "2.13.0")
    assert listing is not None
    have = listed(listing)
    assert (
        number(have["nvidia-cuda-nvcc"])[:2] == number(have["nvidia-cuda-runtime"])[:2] == (13, 0)
    )
    assert place("/e", listing).cuda_home.endswith("/site-packages/nvidia/cu13")
    assert place("/e").cuda_home == ""


def test_a_toolkit_gets_what_its_packages_leave_out(tmp_path: Path) -> None:
    at = tmp_path / "cu13"
    for name in ("bin/nvcc", "lib/libcublas.so.13", "lib/libnvrtc.alt.so.13", "lib/libown.so"):
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text("")
    toolkit.complete(str(at))
    assert os.readlink(at / "lib64") == "lib"
    assert os.readlink(at / "lib" / "libcublas.so") == "libcublas.so.13"
    assert not (at / "lib" / "libown.so").is_symlink()
    assert (at / "lib" / "stubs" / "libcuda.so").read_bytes()[:4] == b"\x7fELF"
    with pytest.raises(EnvironmentFault, match="do not lie where"):
        toolkit.complete(str(tmp_path / "elsewhere"))


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


def test_a_compiler_of_another_architecture_is_said_beforehand() -> None:
    here = Machine(2, 8.0, 80.0, arch="x86_64")
    assert lacking.other_machine("x86_64", here) == []
    (found,) = lacking.other_machine("aarch64", here)
    assert (found.expected, found.found, found.note) == ("aarch64", "x86_64", False)
    assert look("/", None).arch == machine()


def test_doctor_says_that_this_machine_is_of_another_architecture(locked: SmallProject) -> None:
    other = next(a for a in ("x86_64", "aarch64") if a != machine())
    line = ("doctor", "--build", "cpu", "--source", str(locked.base), "--json")
    for arch, said in ((machine(), False), (other, True)):
        done = locked.run(*line, "--arch", arch)
        found = [f for f in json.loads(done.out)["findings"] if f.get("expected") == arch]
        assert bool(found) is said, done.text
