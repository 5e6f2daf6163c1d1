"""A build backend run on the patched tree in a folder of its own, and its wheel made canonical.

The backend sees a fixed umask and only the variables that are given. Its wheel is compared with
the tree and packed anew: sorted, with two modes, since backends take order and modes from the
disk.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.build import label
from patchkit.build.basewheel import wheel_name
from patchkit.build.built import Built, Input
from patchkit.build.changes import member_of
from patchkit.build.content import Content, check_record, read_all
from patchkit.build.inputs import Inputs
from patchkit.build.overlay import facts_of
from patchkit.build.packing import Parts, pack
from patchkit.build.wheelfile import Member, Wheel
from patchkit.build.zipwriter import Date
from patchkit.engine.model import GITLINK, SYMLINK, File
from patchkit.engine.quote import show_path
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.atomic import make_folder
from patchkit.files.root import Root
from patchkit.target.dist_info import STATE
from patchkit.target.installed_state import dump_state
from patchkit.target.record_csv import NAME

STAMP: Date = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can state. A source has no time of its own that all sources of one
tree share."""
EPOCH = "315532800"
"""STAMP in seconds, as SOURCE_DATE_EPOCH has it."""
_SHOWN = 20


@dataclass(frozen=True)
class Job:
    """What a backend is asked. how, generator: as the wheel and its papers state them. stored:
    whether members are packed without compression, so that no zlib has an influence; else they
    stay as the backend packed them. variables: what is recorded of the environment."""

    how: str
    generator: str
    version: str
    stored: bool
    variables: Mapping[str, str]
    inputs: tuple[Input, ...]


def write_tree(inputs: Inputs, at: str) -> None:
    """Write the patched tree into the new folder `at`, with the list that package data is taken
    from."""
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


def put_text(at: str, path: str, text: str) -> None:
    """Write one file below the folder `at`."""
    make_folder(at)
    Root(at).put(path, File(text.encode()), sync=False)


def run_backend(
    python: str, variables: Mapping[str, str], tree: str, out: str, longest: float
) -> str:
    """Run the build backend of `tree` for at most `longest` seconds; the path of its wheel.

    variables: the whole environment. Raises Refused(unsupported) with its last words.
    """
    line = [python, "-m", "pip", "wheel", ".", "-w", out]
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
            timeout=longest,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            Finding("unsupported", f"the build took longer than {longest:.0f} s")
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


def finish(inputs: Inputs, wheel: Wheel, job: Job, out: str) -> Built:
    """Compare the backend's wheel with the tree, and write it anew into the folder `out`.

    Raises Refused(unsupported, not-built-from-this).
    """
    contents = read_all(wheel)
    check_record(wheel, contents)
    left_out = _compare(inputs, wheel, contents)
    info = wheel.dist_info
    metadata = wheel.read(f"{info}/METADATA")
    stated = label.version_of(metadata, wheel.file_name)
    if stated != job.version:
        raise Refused(
            Finding(
                "unsupported",
                "the build did not take the version that it was given",
                Where(file=f"{info}/METADATA"),
                expected=job.version,
                found=stated,
                next="let the project take its version from setuptools-scm, or --how overlay",
            )
        )
    tags = list(wheel_name(wheel.file_name).tags)
    made = label.wheel_file(wheel.read(f"{info}/WHEEL"), job.generator, tags)
    put = {
        f"{info}/WHEEL": (made, False),
        f"{info}/{STATE}": (dump_state(inputs.state(left_out)), False),
    }
    kept: dict[str, tuple[Member, Content]] = {}
    for name, member in wheel.members.items():
        if name in put or name == f"{info}/{NAME}":
            continue
        if job.stored:
            put[name] = (wheel.read(name, 1 << 30), member.executable)
        else:
            kept[name] = (member, contents[name])
    path = os.path.join(out, wheel.file_name)
    packed = pack(Parts(info, kept, put, STAMP), wheel, path)
    requires, license_id = facts_of(metadata)
    differing = inputs.differing
    return Built(
        path,
        wheel.file_name,
        inputs.dist,
        job.version,
        job.how,
        packed.sha256,
        packed.content,
        packed.size,
        tuple(p for p, now in differing.items() if now is not None and p not in left_out),
        tuple(p for p, now in differing.items() if now is None),
        left_out,
        job.inputs,
        requires,
        license_id,
        STAMP,
        tuple(sorted(job.variables.items())),
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
