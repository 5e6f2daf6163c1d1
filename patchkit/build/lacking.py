"""What a machine lacks for a compiled build, all of it said before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import tomllib

from patchkit.build.inputs import Inputs
from patchkit.build.machine import Machine, number
from patchkit.errors import Finding
from patchkit.upstreams.building import Recipe

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def lacks(what: str, expected: str, found: str, next: str, *, note: bool = False) -> Finding:
    """One thing that is missing."""
    return Finding("unsupported", what, expected=expected, found=found, next=next, note=note)


def unknown(inputs: Inputs, device: str, made: Recipe) -> list[Finding]:
    """A device that the upstream has no recipe for."""
    if device in made.native:
        return []
    return [
        lacks(
            f"nothing is known of a {device} build of {inputs.upstream.name}",
            f"one of {', '.join(made.native)}"
            if made.native
            else "a kind of upstream that has one",
            device,
            "patchkit build --how overlay",
        )
    ]


def other_machine(arch: str, machine: Machine) -> list[Finding]:
    """A machine of another architecture: a compiler makes wheels for its own."""
    if machine.arch in ("", arch):
        return []
    return [
        lacks(
            "a wheel is compiled on a machine of its own architecture",
            arch,
            machine.arch,
            f"run it on {arch}, or leave out --arch",
        )
    ]


def compilers(device: str, made: Recipe, machine: Machine, python: str | None) -> list[Finding]:
    """The C++ compiler; for CUDA the toolkit, where it is not the environment's own."""
    found = []
    have, oldest = machine.versions.get("g++", ""), made.gcc.get(device, (0, 0))
    if number(have)[:2] < oldest:
        wanted = ".".join(map(str, oldest))
        found.append(
            lacks(
                "the C++ compiler is missing or too old",
                f"g++ {wanted} or newer on PATH",
                f"g++ {have}" if have else "no g++",
                f"build in the container of ci/{device}.containerfile",
            )
        )
    if device == "cpu" and not machine.headers:
        found.append(
            lacks("libnuma's header is missing", "numa.h", "none", "apt-get install libnuma-dev")
        )
    if device == "cuda":
        found += toolkit(made, machine) if python is not None else []
        found += driver(made, machine)
    return found


def toolkit(made: Recipe, machine: Machine) -> list[Finding]:
    """The machine's CUDA toolkit, against the recipe's and against torch."""
    found = []
    nvcc, torch = machine.versions.get("nvcc", ""), machine.versions.get("torch-cuda", "")
    if number(nvcc)[0] != number(made.cuda)[0]:
        found.append(
            lacks(
                "the CUDA toolkit is missing or of another release",
                f"nvcc {made.cuda} below CUDA_HOME",
                f"nvcc {nvcc}" if nvcc else f"none in {machine.cuda_home or 'any CUDA_HOME'}",
                "leave out --python: then torch and the toolkit come by their hashes",
            )
        )
    if torch and number(torch)[0] != number(nvcc)[0]:
        found.append(
            lacks(
                "torch and the CUDA toolkit are of two CUDA releases",
                f"torch for CUDA {nvcc or made.cuda}",
                f"torch for CUDA {torch}",
                "install the torch of the toolkit's CUDA",
            )
        )
    return found


def driver(made: Recipe, machine: Machine) -> list[Finding]:
    """A note where the wheel would not run here."""
    have = machine.versions.get("driver", "")
    if number(have)[0] >= number(made.cuda)[0]:
        return []
    return [
        lacks(
            "the wheel will not run on this machine, though it may be built here",
            f"a driver for CUDA {number(made.cuda)[0]}",
            f"one for CUDA {have}" if have else "no NVIDIA driver",
            "",
            note=True,
        )
    ]


def requirements(project: bytes, have: Mapping[str, str], where: str) -> list[Finding]:
    """The build requirements of pyproject.toml against `have`: package -> release.

    where: what has them, in words.
    """
    return [
        lacks(
            f"{row.name} is missing, or not as pyproject.toml asks",
            str(row),
            have.get(row.name.lower(), "none"),
            f"install it for {where}, by its hash",
        )
        for row in wanted(project)
        if row.marker is None or row.marker.evaluate()
        if not row.specifier.contains(have.get(row.name.lower(), "0"), prereleases=True)
        or row.name.lower() not in have
    ]


def wanted(project: bytes) -> list[Requirement]:
    """The build requirements that a pyproject.toml states; none where it cannot be read."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        stated = tomllib.loads(project.decode("utf-8"))["build-system"]["requires"]
        return [Requirement(text) for text in stated]
    except (ValueError, KeyError, TypeError, InvalidRequirement):
        return []


def torch_of(project: bytes) -> str:
    """The torch that a pyproject.toml asks for, "" where it names no release."""
    found = [row for row in wanted(project) if row.name.lower() == "torch"]
    exact = [s.version for row in found for s in row.specifier if s.operator == "=="]
    return exact[0] if len(exact) == 1 else ""


def rust(toolchain: bytes, machine: Machine) -> list[Finding]:
    """The Rust toolchain that rust-toolchain.toml names."""
    channel = _channel(toolchain)
    if not channel or (toolchain_for(toolchain, machine) and "cargo" in machine.versions):
        return []
    return [
        lacks(
            "the Rust toolchain is missing: without it the front end is left out without a word",
            f"toolchain {channel}",
            ", ".join(machine.toolchains) or "none",
            f"rustup toolchain install {channel}",
        )
    ]


def toolchain_for(toolchain: bytes, machine: Machine) -> str:
    """The installed toolchain that rust-toolchain.toml means, "" for none: 1.95 is 1.95.0 too,
    which rustup does not see by itself."""
    channel = _channel(toolchain)
    leads = (f"{channel}-", f"{channel}.")
    return next((t for t in machine.toolchains if channel and f"{t}-".startswith(leads)), "")


def _channel(toolchain: bytes) -> str:
    try:
        return str(tomllib.loads(toolchain.decode("utf-8"))["toolchain"]["channel"])
    except (ValueError, KeyError, TypeError):
        return ""


def room(made: Recipe, machine: Machine) -> list[Finding]:
    """Memory for one job, and disk."""
    found = []
    if machine.memory < made.memory:
        found.append(
            lacks(
                "there is not enough memory for one compile job",
                f"{made.memory} GiB free",
                f"{machine.memory:.1f} GiB",
                "free some, or take another machine",
            )
        )
    if machine.disk < made.disk:
        found.append(
            lacks(
                "there is not enough disk",
                f"{made.disk} GiB free at {made.at}",
                f"{machine.disk:.0f} GiB",
                "free some, or take another machine",
            )
        )
    return found
