"""A compiled build (cuda, cpu): its whole environment, and all that is missing, before it starts.

What makes compiled objects differ, measured on v0.30.0 with nvcc 13.0: its process id in symbols
(-objtemp mends that), the path of the build folder (so there is one), debug information, compiler
caches, and hidden inputs such as a Rust toolchain that is or is not there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import tomllib

from patchkit.build import label
from patchkit.build.backend import EPOCH, Job, finish, put_text, run_backend, write_tree
from patchkit.build.built import Built, Input
from patchkit.build.inputs import Inputs
from patchkit.build.machine import Machine, jobs, number
from patchkit.build.wheelfile import open_wheel
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.growing import remove_folder
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.upstreams.building import Fetched, Recipe, recipe

_LONGEST = 24 * 3600.0
MARK = ".patchkit-build"
DEPS = ".deps"
"""Beside the build folder: where the fetched sources lie."""


@dataclass(frozen=True)
class Plan:
    """variables: the build's environment, besides PATH and HOME. line: the command. fetched:
    sources that must lie there before. missing: what this machine lacks; notes among them do not
    stop a build."""

    device: str
    version: str
    at: str
    variables: Mapping[str, str]
    line: tuple[str, ...]
    fetched: tuple[Fetched, ...]
    missing: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether a build may start."""
        return all(f.note for f in self.missing)


def plan(inputs: Inputs, device: str, arch: str, machine: Machine, python: str | None) -> Plan:
    """What building the stack for `device` takes. machine: what this one has."""
    made = recipe(inputs.known.kind)
    version = _version(inputs, device, made)
    deps = os.path.join(os.path.dirname(made.at), DEPS)
    tree = inputs.store.tree(inputs.tree, inputs.prepared.base.fetch)
    fetched = made.fetched(tree, [f.path for f in tree.walk()], device)
    variables = {
        **made.native.get(device, {}),
        made.version_variable: version,
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "umask": "022",
        "MAX_JOBS": str(jobs(machine.cores, machine.memory, made.memory)),
        "FETCHCONTENT_BASE_DIR": deps,
    }
    if device == "cuda":
        variables["TORCH_CUDA_ARCH_LIST"] = made.arches.get(arch, "")
        variables["CUDA_HOME"] = machine.cuda_home
    project = tree.get("pyproject.toml")
    rust = tree.get("rust-toolchain.toml")
    missing = [
        *_device(inputs, device, made),
        *_compilers(device, made, machine),
        *_requirements(project.data if project else b"", machine, python),
        *(_rust(rust.data, machine) if rust else []),
        *_room(made, machine),
        *_sources(fetched, deps),
    ]
    line = (python or "python3", "-m", "pip", "wheel", ".", "--no-build-isolation", "--no-deps")
    return Plan(device, version, made.at, variables, line, fetched, tuple(missing))


def build(inputs: Inputs, ready: Plan, python: str, out: str, progress: Progress = silent) -> Built:
    """Compile, in the one folder that a plan names. Raises EnvironmentFault with all that is
    missing; Refused as `finish` does."""
    if not ready.ok:
        raise EnvironmentFault(*(f for f in ready.missing if not f.note))
    tree = os.path.join(ready.at, "tree")
    _clear(ready.at)
    progress("writing the tree", 0)
    write_tree(inputs, tree)
    variables = {k: v for k, v in ready.variables.items() if k != "umask"}
    surroundings = {"PATH": os.environ.get("PATH", ""), "HOME": ready.at, "TMPDIR": ready.at}
    progress("compiling", 0)
    made = os.path.join(ready.at, "out")
    wheel = run_backend(python, {**surroundings, **variables}, tree, made, _LONGEST)
    used = tuple(
        Input("source", f"{f.name} {f.address}", (("gitCommit", f.ref),))
        for f in ready.fetched
        if f.fixed
    )
    job = Job(
        ready.device, f"patchkit-{ready.device} 1", ready.version, False, ready.variables, used
    )
    with open_wheel(wheel, digest_of(wheel)) as found:
        return finish(inputs, found, job, out)


def _clear(at: str) -> None:
    """Remove an earlier build of ours; nothing else is ever removed."""
    if os.path.isdir(at) and os.listdir(at) and not os.path.exists(os.path.join(at, MARK)):
        raise EnvironmentFault(
            Finding(
                "disk",
                "the build folder holds something that patchkit did not make",
                Where(file=at),
                expected="an empty folder, or none",
                next=f"move it away: builds stand at {at} alone, since objects hold their path",
            )
        )
    remove_folder(at)
    put_text(at, MARK, "made by patchkit; safe to delete as a whole\n")


def _version(inputs: Inputs, device: str, made: Recipe) -> str:
    # No "cpu" in a CUDA wheel's label; vLLM itself looks for these letters in its version.
    variant = {"cpu": "+cpu"}.get(device, "")
    return label.label(label.public(inputs.version) + variant, inputs.tree)


def _lacks(what: str, expected: str, found: str, next: str, *, note: bool = False) -> Finding:
    return Finding("unsupported", what, expected=expected, found=found, next=next, note=note)


def _device(inputs: Inputs, device: str, made: Recipe) -> list[Finding]:
    if device in made.native:
        return []
    return [
        _lacks(
            f"nothing is known of a {device} build of {inputs.upstream.name}",
            "one of " + (", ".join(made.native) or "no device"),
            device,
            "patchkit build --how overlay",
        )
    ]


def _compilers(device: str, made: Recipe, machine: Machine) -> list[Finding]:
    found = []
    have, oldest = machine.versions.get("g++", ""), made.gcc.get(device, (0, 0))
    if number(have)[:2] < oldest:
        wanted = ".".join(map(str, oldest))
        found.append(
            _lacks(
                "the C++ compiler is missing or too old",
                f"g++ {wanted} or newer on PATH",
                f"g++ {have}" if have else "no g++",
                f"build in the container of ci/{device}.containerfile",
            )
        )
    if device == "cpu" and not machine.headers:
        found.append(
            _lacks("libnuma's header is missing", "numa.h", "none", "apt-get install libnuma-dev")
        )
    if device != "cuda":
        return found
    nvcc, torch = machine.versions.get("nvcc", ""), machine.versions.get("torch-cuda", "")
    if number(nvcc)[0] != number(made.cuda)[0]:
        found.append(
            _lacks(
                "the CUDA toolkit is missing or of another release",
                f"nvcc {made.cuda} below CUDA_HOME",
                f"nvcc {nvcc}" if nvcc else f"none in {machine.cuda_home or 'any CUDA_HOME'}",
                "install it, or build in the container of ci/cuda.containerfile",
            )
        )
    if torch and number(torch)[0] != number(nvcc)[0]:
        found.append(
            _lacks(
                "torch and the CUDA toolkit are of two CUDA releases",
                f"torch for CUDA {nvcc or made.cuda}",
                f"torch for CUDA {torch}",
                "install the torch of the toolkit's CUDA",
            )
        )
    driver = machine.versions.get("driver", "")
    if number(driver)[0] < number(made.cuda)[0]:
        found.append(
            _lacks(
                "the wheel will not run on this machine, though it may be built here",
                f"a driver for CUDA {number(made.cuda)[0]}",
                f"one for CUDA {driver}" if driver else "no NVIDIA driver",
                "",
                note=True,
            )
        )
    return found


def _requirements(project: bytes, machine: Machine, python: str | None) -> list[Finding]:
    """The build requirements of pyproject.toml against what the interpreter and PATH have."""
    from packaging.requirements import InvalidRequirement, Requirement

    if python is None:
        return [
            _lacks(
                "no interpreter is named to build with",
                "one with the build requirements",
                "none",
                "--python EXE",
            )
        ]
    try:
        stated = tomllib.loads(project.decode("utf-8"))["build-system"]["requires"]
        wanted = [Requirement(text) for text in stated]
    except (ValueError, KeyError, TypeError, InvalidRequirement):
        return []
    found = []
    for row in wanted:
        have = machine.versions.get(row.name.lower())
        if row.name in ("packaging",) or (row.marker is not None and not row.marker.evaluate()):
            continue
        if have is None or not row.specifier.contains(have, prereleases=True):
            found.append(
                _lacks(
                    f"{row.name} is missing, or not as pyproject.toml asks",
                    str(row),
                    have or "none",
                    f"install it for {python}, by its hash",
                )
            )
    return found


def _rust(toolchain: bytes, machine: Machine) -> list[Finding]:
    try:
        channel = str(tomllib.loads(toolchain.decode("utf-8"))["toolchain"]["channel"])
    except (ValueError, KeyError, TypeError):
        return []
    have = [t for t in machine.toolchains if t.startswith(channel)]
    if have and "cargo" in machine.versions:
        return []
    return [
        _lacks(
            "the Rust toolchain is missing: without it the front end is left out without a word",
            f"toolchain {channel}",
            ", ".join(machine.toolchains) or "none",
            f"rustup toolchain install {channel}",
        )
    ]


def _room(made: Recipe, machine: Machine) -> list[Finding]:
    found = []
    if machine.memory < made.memory:
        found.append(
            _lacks(
                "there is not enough memory for one compile job",
                f"{made.memory} GiB free",
                f"{machine.memory:.1f} GiB",
                "free some, or take another machine",
            )
        )
    if machine.disk < made.disk:
        found.append(
            _lacks(
                "there is not enough disk",
                f"{made.disk} GiB free at {made.at}",
                f"{machine.disk:.0f} GiB",
                "free some, or take another machine",
            )
        )
    return found


def _sources(fetched: tuple[Fetched, ...], deps: str) -> list[Finding]:
    found = []
    for row in fetched:
        at = os.path.join(deps, f"{row.name}-src".lower())
        if not os.path.isdir(at):
            found.append(
                Finding(
                    "network",
                    f"{row.name} is not there, and the build may not fetch it",
                    Where(file=at),
                    expected=f"{row.address} at {row.ref}",
                    found="no such folder",
                    next=f"git clone {row.address} {at} && git -C {at} checkout {row.ref} "
                    f"&& git -C {at} submodule update --init --recursive",
                )
            )
        if not row.fixed:
            found.append(
                _lacks(
                    f"{row.name} is asked for by a tag, which may be moved",
                    "a commit id",
                    f"{row.ref} ({row.where})",
                    "compare the commit with what the release was built from",
                    note=True,
                )
            )
    return found
