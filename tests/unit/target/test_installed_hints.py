"""After patching: stale caches by name, and a driver that is too old for the wheel."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from patchkit.target.dist_info import find_dist
from patchkit.target.installed import apply_pins
from patchkit.target.installed_hints import (
    caches_of,
    cuda_note,
    driver_cuda,
    needed_libraries,
    wheel_cuda,
)
from patchkit.upstreams.caches import stale_caches
from tests.unit.target.installing import BASE, Series, Site


def elf(*needed: str) -> bytes:
    """The least of a shared library that names what it needs."""
    strings = b"\0" + b"".join(n.encode() + b"\0" for n in needed)
    dynamic = b"".join(struct.pack("<QQ", 1, strings.index(n.encode() + b"\0")) for n in needed)
    at = 64 + 2 * 56
    dynamic += struct.pack("<QQ", 5, 0x1000 + at + len(dynamic) + 32) + struct.pack("<QQ", 0, 0)
    size = at + len(dynamic) + len(strings)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000, 0x1000, size, size, 4096)
    table = struct.pack("<IIQQQQQQ", 2, 6, at, 0x1000 + at, 0, len(dynamic), len(dynamic), 8)
    return head + load + table + dynamic + strings


def nvidia_smi(at: Path, text: str) -> Path:
    at.mkdir()
    (at / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'X'\n{text}\nX\n")
    (at / "nvidia-smi").chmod(0o755)
    return at


HEADER = (
    "| NVIDIA-SMI 580.159.04   Driver Version: 580.159.04     CUDA Version: 13.0     |\n"
    "|  0%   52C    P0   | 1MiB / 2MiB |"
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install({**BASE, "engine/_C.abi3.so": elf("libc.so.6", "libcudart.so.13")})
    return made


def test_the_needed_libraries_of_an_elf_file(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(elf("libcudart.so.12", "libtorch.so"))
    assert needed_libraries(str(tmp_path / "x.so")) == [b"libcudart.so.12", b"libtorch.so"]
    whole = elf("liba.so")
    for cut in (
        b"",
        b"text",
        whole[:40],
        whole[:100],
        whole[:-9],
        b"\x7fELF\x02\x01" + b"\xff" * 90,
    ):
        (tmp_path / "x.so").write_bytes(cut)
        assert isinstance(needed_libraries(str(tmp_path / "x.so")), list)


def test_a_driver_that_is_too_old_is_a_note(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = find_dist(site.sites, "engine")
    assert wheel_cuda(dist) == 13
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for number, (text, note) in enumerate(
        [(HEADER, False), (HEADER.replace("13.0", "12.8"), True), ("no driver", False)]
    ):
        folder = nvidia_smi(tmp_path / f"bin{number}", text)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        found = cuda_note(dist)
        assert (found is not None) == note, text
        if found is not None:
            assert found.note
            assert "CUDA 13" in found.message
            assert "12.8" in found.found
    assert driver_cuda() is None


def test_without_nvidia_smi_or_cuda_there_is_nothing_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "s")
    site.install()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cuda_note(find_dist(site.sites, "engine")) is None


def test_caches_that_a_change_makes_stale() -> None:
    found = stale_caches(
        {
            "vllm/config.py": b"x",
            "vllm/k.py": b"@triton.jit\ndef k(): pass",
            "other/c.py": b"torch.compile(f)",
            "other/d.json": b"torch.compile",
        }
    )
    assert {c.name: c.files for c in found} == {
        "vLLM's torch.compile cache": ("vllm/config.py", "vllm/k.py"),
        "Triton's kernel cache": ("vllm/k.py",),
        "the torch.compile (Inductor) cache": ("other/c.py",),
    }
    assert all(c.clear.startswith("rm -rf ") for c in found)


def test_a_plan_says_which_caches(site: Site) -> None:
    series = Series().add("k.patch", {"engine/b.py": b"@triton.jit\ndef k(): pass\n"})
    done = apply_pins(site.sites, [series.packet()])
    assert [c.name for c in caches_of(done.plans[0])] == ["Triton's kernel cache"]
