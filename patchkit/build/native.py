"""A compiled build (cuda, cpu): its whole environment, its sources, and then the compiler.

What makes compiled objects differ, measured on v0.30.0 with nvcc 13.0: its process id in symbols
(-objtemp mends that), the path of the build folder (so there is one), debug information, compiler
caches, and hidden inputs such as a Rust toolchain that is or is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.build import configure, crates, environment, lacking, sources
from patchkit.build import label as labels
from patchkit.build.ask import Asked
from patchkit.build.backend import EPOCH, Job, finish, put_text, run_backend, write_tree
from patchkit.build.built import Built, Input
from patchkit.build.inputs import Inputs
from patchkit.build.machine import Machine, jobs
from patchkit.build.wheelfile import open_wheel
from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_folder
from patchkit.files.lock import locked
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.upstreams.building import Fetched, Recipe, recipe

_LONGEST = 24 * 3600.0
MARK = ".patchkit-build"
DEPS, TREE = "deps", "tree"
"""Below the build folder: where the fetched sources and the patched tree lie."""
ENVIRONMENTS = ".environments"
"""Beside the build folder: objects hold the paths of torch's headers too."""
_NOWHERE = "http://127.0.0.1:9"
_CLOSED = {
    "http_proxy": _NOWHERE,
    "https_proxy": _NOWHERE,
    "PIP_NO_INDEX": "1",
    "PIP_CONFIG_FILE": os.devnull,
    # git speaks no protocol of that name, so it fetches nothing.
    "GIT_ALLOW_PROTOCOL": "none",
    "CARGO_NET_OFFLINE": "true",
}


@dataclass(frozen=True)
class Plan:
    """variables: the build's environment, besides PATH and HOME. line: the command. fetched:
    sources that must be had before. missing: what this machine lacks; notes among them do not
    stop a build. python: the interpreter that was named. listing: of the environment that is made
    where none was."""

    device: str
    version: str
    made: Recipe
    variables: Mapping[str, str]
    line: tuple[str, ...]
    fetched: tuple[Fetched, ...]
    missing: tuple[Finding, ...]
    python: str | None = None
    listing: Path | None = None

    @property
    def at(self) -> str:
        """The one folder that the build stands in."""
        return self.made.at

    @property
    def ok(self) -> bool:
        """Whether a build may start."""
        return all(f.note for f in self.missing)


def plan(inputs: Inputs, device: str, arch: str, machine: Machine, asked: Asked) -> Plan:
    """What building the stack for `device` takes. machine: what this one has."""
    python, configure = asked.interpreter, asked.configure
    made = recipe(inputs.known.kind)
    tree = inputs.store.tree(inputs.tree, inputs.prepared.base.fetch)
    fetched = made.fetched(tree, [f.path for f in tree.walk()], device, arch)
    files = {name: tree.get(name) for name in ("pyproject.toml", "rust-toolchain.toml")}
    project, toolchain = ((f.data if f is not None else b"") for f in files.values())
    torch = lacking.torch_of(project)
    listing = environment.list_for(device, torch) if python is None else None
    version = _version(inputs, device)
    variables = {
        **made.native.get(device, {}),
        made.version_variable: version,
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "umask": "022",
        "MAX_JOBS": str(jobs(machine.cores, machine.memory, made.memory)),
        "FETCHCONTENT_BASE_DIR": os.path.join(made.at, DEPS),
        "CARGO_HOME": os.path.join(made.at, crates.HOME),
    }
    rust = lacking.toolchain_for(toolchain, machine)
    variables |= {"RUSTUP_TOOLCHAIN": rust} if rust else {}
    if device == "cuda":
        home = machine.cuda_home
        if listing is not None:
            home = environment.place(_environments(made), listing).cuda_home
        more = f"-DCUDA_TOOLKIT_ROOT_DIR={home}"
        variables["CMAKE_ARGS"] = f"{variables.get('CMAKE_ARGS', '')} {more}".strip()
        variables["TORCH_CUDA_ARCH_LIST"] = asked.archs or made.arches.get(arch, "")
        variables["CUDA_HOME"] = variables["CUDA_PATH"] = home
    have, where = dict(machine.versions), python or ""
    if listing is not None:
        have |= environment.listed(listing)
        where = f"patchkit/build/{listing.name}"
    missing = [
        *lacking.unknown(inputs, device, made),
        *lacking.other_machine(arch, machine),
        *lacking.compilers(device, made, machine, python),
        *(lacking.requirements(project, have, where) if where else []),
        *(lacking.rust(toolchain, machine) if toolchain and not configure else []),
        *(lacking.room(made, machine) if not configure else []),
    ]
    if not where and device in made.native:
        missing.append(
            lacking.lacks(
                "no interpreter is named to build with, and there is no list of one",
                f"patchkit/build/env-{device}-torch{torch or '…'}.txt",
                "no such list",
                "--python EXE, one that has the build requirements",
            )
        )
    line = [python or os.path.join(ENVIRONMENTS, "…", "bin", "python")]
    line += made.configure if configure else ("-m", "pip", "wheel", ".", "--no-build-isolation")
    return Plan(
        device, version, made, variables, tuple(line), fetched, tuple(missing), python, listing
    )


@dataclass(frozen=True)
class Ready:
    """A build folder with everything in it. python: the interpreter. variables: the whole
    environment. used: the inputs that the wheel's papers name. findings: notes."""

    python: str
    tree: str
    variables: Mapping[str, str]
    used: tuple[Input, ...]
    findings: tuple[Finding, ...]


@contextmanager
def _prepared(
    inputs: Inputs, plan: Plan, folders: Mapping[str, str], offline: bool, progress: Progress
) -> Iterator[Ready]:
    """Have everything that the build takes, then write it into the one folder; held while inside.

    Raises EnvironmentFault with all that is missing, before anything is written.
    """
    brought, findings = sources.bring(
        inputs.store, inputs.pin, plan.fetched, folders, offline=offline, progress=progress
    )
    all_found = [*plan.missing, *findings]
    all_found += [replace(f, note=False) for f in unmade(plan)] if offline else []
    place = _environments(plan.made)
    if any(not f.note for f in all_found):
        raise EnvironmentFault(*(f for f in all_found if not f.note))
    make_folder(os.path.dirname(plan.at))
    with locked(f"{plan.at}.lock", wait=5):
        _check_ours(plan.at)
        python, path = plan.python or "", os.environ.get("PATH", "")
        used: tuple[Input, ...] = ()
        if plan.listing is not None:
            made = environment.made(place, plan.listing, progress, offline=offline)
            python, path = made.interpreter, f"{made.bin}{os.pathsep}{path}"
            used = (Input("environment", made.listing, (("sha256", made.sha256),)),)
        _clear(plan.at)
        progress("writing the tree and its sources", 0)
        tree = os.path.join(plan.at, TREE)
        write_tree(inputs, tree)
        sources.lay_out(inputs.store, brought, os.path.join(plan.at, DEPS))
        variables = {
            **{k: v for k, v in plan.variables.items() if k != "umask"},
            **_CLOSED,
            "PATH": path,
            "HOME": plan.at,
            "TMPDIR": plan.at,
            # HOME is the build's own, and the toolchains are the user's.
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup"),
        }
        rows = (row for each in brought for row in each.inputs)
        yield Ready(python, tree, variables, (*used, *rows), tuple(all_found))


def build(
    inputs: Inputs,
    plan: Plan,
    out: str,
    *,
    folders: Mapping[str, str],
    offline: bool = False,
    progress: Progress = silent,
) -> Built:
    """Compile, in the one folder that a plan names. Raises EnvironmentFault with all that is
    missing; Refused as `finish` does."""
    with _prepared(inputs, plan, folders, offline, progress) as ready:
        crates.fetch(ready.tree, plan.made.crates, ready.variables, offline, progress)
        progress("compiling", 0)
        at = os.path.join(plan.at, "out")
        wheel = run_backend(ready.python, ready.variables, ready.tree, at, _LONGEST)
        recorded = {k: v for k, v in plan.variables.items() if k != "MAX_JOBS"}
        name = f"patchkit-{plan.device} 1"
        job = Job(plan.device, name, plan.version, False, recorded, ready.used)
        with open_wheel(wheel, digest_of(wheel)) as found:
            built = finish(inputs, found, job, out)
        remove_folder(plan.at)
        return replace(built, notes=ready.findings)


def only_configure(
    inputs: Inputs,
    plan: Plan,
    *,
    folders: Mapping[str, str],
    offline: bool = False,
    progress: Progress = silent,
) -> configure.Configured:
    """Run CMake as the build does, and stop where it would compile. The folder stays.

    Raises EnvironmentFault and Refused as `build` does.
    """
    with _prepared(inputs, plan, folders, offline, progress) as ready:
        progress("configuring", 0)
        line = (ready.python, *plan.made.configure)
        made = configure.run(line, ready.variables, ready.tree, plan.at)
        facts = replace(made, tree=inputs.tree, device=plan.device, findings=ready.findings)
        configure.remember(plan.at, facts)
        return facts


def unmade(plan: Plan) -> list[Finding]:
    """A note where the environment of the plan is not made yet."""
    if plan.listing is None or environment.is_made(_environments(plan.made), plan.listing):
        return []
    return [environment.absent(plan.listing).as_note()]


def _environments(made: Recipe) -> str:
    return os.path.join(os.path.dirname(made.at), ENVIRONMENTS)


def _check_ours(at: str) -> None:
    """Raise EnvironmentFault where the build folder was not made by us: nothing else is removed."""
    if os.path.lexists(at) and not os.path.isdir(at):
        found = "a file"
    elif os.path.isdir(at) and os.listdir(at) and not os.path.exists(os.path.join(at, MARK)):
        found = "other things"
    else:
        return
    raise EnvironmentFault(
        Finding(
            "disk",
            "the build folder holds something that patchkit did not make",
            Where(file=at),
            expected="an empty folder, or none",
            found=found,
            next=f"move it away: builds stand at {at} alone, since objects hold their path",
        )
    )


def _clear(at: str) -> None:
    """An empty build folder, with our mark in it."""
    remove_folder(at)
    put_text(at, MARK, "made by patchkit; safe to delete as a whole\n")


def _version(inputs: Inputs, device: str) -> str:
    # No "cpu" in a CUDA wheel's label; vLLM itself looks for these letters in its version.
    variant = {"cpu": "+cpu"}.get(device, "")
    return labels.label(labels.public(inputs.version) + variant, inputs.tree)
