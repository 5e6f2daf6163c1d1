"""Upstream's own build without compiled parts, in a throw-away copy of the patched tree.

The build backend runs in an environment in which every package has its hash, with a fixed umask
and environment and without a network. What it makes is then packed anew: sorted, stored, with
one date and two modes, since backends take these from the disk.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from patchkit.build import label
from patchkit.build.basewheel import wheel_name
from patchkit.build.built import Built, Input
from patchkit.build.changes import member_of
from patchkit.build.content import Content, check_record, read_all
from patchkit.build.environment import Environment, ready
from patchkit.build.inputs import Inputs
from patchkit.build.overlay import facts_of
from patchkit.build.packing import Parts, pack
from patchkit.build.scratch import scratch
from patchkit.build.wheelfile import Wheel, open_wheel
from patchkit.engine.model import GITLINK, SYMLINK, File
from patchkit.engine.quote import show_path
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.atomic import make_folder
from patchkit.files.root import Root
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.target.dist_info import STATE
from patchkit.target.installed_state import dump_state
from patchkit.target.record_csv import NAME
from patchkit.upstreams.building import Recipe, recipe

GENERATOR = "patchkit-empty 1"
"""In WHEEL. The number is raised whenever the same inputs would give other bytes."""
STAMP = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can state. A source has no time of its own that all sources of one
tree share."""
EPOCH = "315532800"
"""STAMP in seconds, as SOURCE_DATE_EPOCH has it."""
VARIANT = "empty"
_LONGEST = 900.0
_SHOWN = 20


def build(inputs: Inputs, out: str, progress: Progress = silent) -> Built:
    """Build the wheel into the folder `out`.

    Raises Refused(unsupported) where the upstream has no such build or the build fails,
    not-built-from-this where it leaves files of the tree out; EnvironmentFault.
    """
    made = recipe(inputs.known.kind)
    if made.empty is None:
        raise Refused(
            Finding("unsupported", f"{inputs.upstream.name} has no build without compiled parts")
        )
    version = label.label(f"{label.public(inputs.version)}+{VARIANT}", inputs.tree)
    environment = ready(inputs.store.root, progress)
    with scratch(inputs.store.root, VARIANT) as at:
        progress("writing the tree", 0)
        tree = os.path.join(at, "tree")
        _write_tree(inputs, tree)
        for path, text in made.stubs.items():
            _put(os.path.join(at, "stubs"), path, text)
        variables = _variables(made, version, environment, at)
        progress("building", 0)
        wheel = _run(environment, variables, tree, os.path.join(at, "out"))
        with open_wheel(wheel, digest_of(wheel)) as found:
            return _repack(inputs, found, version, environment, made, out)


def _write_tree(inputs: Inputs, at: str) -> None:
    make_folder(at)
    root = Root(at)
    tree = inputs.store.tree(inputs.tree, inputs.prepared.base.fetch)
    names = []
    for listed, data in tree.contents(tree.walk()):
        if listed.mode != GITLINK:
            root.put(listed.path, File(data, listed.mode), sync=False)
            names.append(listed.path)
    # The list of package data is git's in a clone and this file's in a sdist; we have neither a
    # clone nor, for new files, a list. So all sources give one list: the tree itself.
    name = inputs.dist.replace("-", "_")
    lead = f"{inputs.known.root}/" if inputs.known.root else ""
    listing = f"{lead}{name}.egg-info/SOURCES.txt"
    usual = "".join(f"{n}\n" for n in sorted(names) if n.isprintable())
    root.put(listing, File(usual.encode("utf-8", "surrogateescape")), sync=False)


def _put(at: str, path: str, text: str) -> None:
    make_folder(at)
    Root(at).put(path, File(text.encode()), sync=False)


def _variables(made: Recipe, version: str, environment: Environment, at: str) -> dict[str, str]:
    """The whole environment of the build: nothing is inherited."""
    nowhere = "http://127.0.0.1:9"
    return {
        # Nothing but the environment's own programs: a cargo on PATH would add to the wheel.
        "PATH": environment.bin,
        "HOME": at,
        "TMPDIR": at,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.path.join(at, "stubs"),
        "SOURCE_DATE_EPOCH": EPOCH,
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        made.version_variable: version,
        **(made.empty or {}),
    }


def _run(environment: Environment, variables: Mapping[str, str], tree: str, out: str) -> str:
    """Run the build backend; the path of its wheel."""
    line = [os.path.join(environment.bin, "python"), "-m", "pip", "wheel", ".", "-w", out]
    line += ["--no-build-isolation", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
    make_folder(out)
    try:
        done = subprocess.run(
            line,
            cwd=tree,
            env=dict(variables),
            umask=0o022,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            Finding("unsupported", f"the build took longer than {_LONGEST:.0f} s")
        ) from None
    wheels = sorted(n for n in os.listdir(out) if n.endswith(".whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise Refused(
            Finding(
                "unsupported",
                "upstream's build of the patched tree failed",
                expected="one wheel",
                found=f"exit {done.returncode}, {len(wheels)} wheels",
                details=tuple((done.stdout + done.stderr).strip().split("\n")[-_SHOWN:]),
                next="mend the patch that its message names",
            )
        )
    return os.path.join(out, wheels[0])


def _repack(
    inputs: Inputs,
    wheel: Wheel,
    version: str,
    environment: Environment,
    made: Recipe,
    out: str,
) -> Built:
    contents = read_all(wheel)
    check_record(wheel, contents)
    left_out = _compare(inputs, wheel, contents)
    info = wheel.dist_info
    named = wheel_name(wheel.file_name)
    put = {
        name: (wheel.read(name, 1 << 30), member.executable)
        for name, member in wheel.members.items()
        if name != f"{info}/{NAME}"
    }
    metadata = put[f"{info}/METADATA"][0]
    stated = label.version_of(metadata, wheel.file_name)
    if stated != version:
        raise Refused(
            Finding(
                "unsupported",
                "the build did not take the version that it was given",
                Where(file=f"{info}/METADATA"),
                expected=version,
                found=stated,
            )
        )
    tags = list(named.tags)
    put[f"{info}/WHEEL"] = (label.wheel_file(put[f"{info}/WHEEL"][0], GENERATOR, tags), False)
    put[f"{info}/{STATE}"] = (dump_state(inputs.state(left_out)), False)
    path = os.path.join(out, wheel.file_name)
    packed = pack(Parts(info, {}, put, STAMP), wheel, path)
    requires, license_id = facts_of(metadata)
    variables = {
        "python": environment.python,
        "umask": "022",
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": "0",
        made.version_variable: version,
        **(made.empty or {}),
    }
    gone = [p for p, now in inputs.differing.items() if now is None]
    return Built(
        path,
        wheel.file_name,
        inputs.dist,
        version,
        "empty",
        packed.sha256,
        packed.content,
        packed.size,
        tuple(p for p, now in inputs.differing.items() if now is not None and p not in left_out),
        tuple(gone),
        left_out,
        (Input("environment", "build-env.txt", (("sha256", environment.sha256),)),),
        requires,
        license_id,
        STAMP,
        tuple(sorted(variables.items())),
    )


def _compare(inputs: Inputs, wheel: Wheel, contents: Mapping[str, Content]) -> tuple[str, ...]:
    """Every file of the package against the patched tree; tree paths that no wheel holds.

    Raises Refused(not-built-from-this) where a changed file is not in the wheel, or one is not
    the tree's: build scripts leave data out that no list of theirs names.
    """
    tree = {f.path: f for f in inputs.store.tree(inputs.tree).walk()}
    wrong = []
    for path, listed in tree.items():
        if listed.mode in (SYMLINK, GITLINK) or inputs.known.outside_package(path):
            continue
        found = contents.get(member_of(inputs.known, path))
        if found is None and (path in inputs.differing or path.endswith(".py")):
            wrong.append(f"{show_path(path)}: missing")
        elif found is not None and found.oid != listed.oid:
            wrong.append(f"{show_path(path)}: other bytes")
    wrong += [
        f"{show_path(path)}: still there"
        for path, now in inputs.differing.items()
        if now is None and member_of(inputs.known, path) in contents
    ]
    if wrong:
        raise Refused(
            Finding(
                "not-built-from-this",
                "upstream's build does not give the patched tree's files",
                Where(file=wheel.file_name),
                expected="every changed file and every module of the package",
                found=f"{len(wrong)} are missing or differ",
                next="name new data files in the package's list of data, in the patch",
                details=tuple(wrong[:_SHOWN]),
            )
        )
    outside = [p for p in inputs.differing if inputs.known.outside_package(p)]
    return tuple(p for p in outside if member_of(inputs.known, p) not in contents)
