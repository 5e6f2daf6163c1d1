"""The official wheel with the changed files in place of its own: nothing compiled, nothing run.

First everything is read and compared; the output folder is not even made before the last check
holds. Compressed bytes of members that do not change are copied.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from patchkit.build import basematch, label
from patchkit.build.basewheel import BaseWheel, WheelName, wheel_name
from patchkit.build.built import Built, Input
from patchkit.build.changes import Changes, member_of, refuse, sort_out
from patchkit.build.content import Content, check_record, read_all
from patchkit.build.inputs import Inputs
from patchkit.build.packing import Parts, pack
from patchkit.build.wheelfile import Wheel, below_a_file, open_wheel
from patchkit.engine.model import EXECUTABLE
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.source.base import Progress, silent
from patchkit.target.dist_info import STATE
from patchkit.target.installed_state import dump_state
from patchkit.target.record_csv import NAME
from patchkit.upstreams.setuptools_files import made_by_setuptools

GENERATOR = "patchkit-overlay 1"
"""In WHEEL. The number is raised whenever the same inputs would give other bytes."""
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


def build(inputs: Inputs, given: BaseWheel, out: str, progress: Progress = silent) -> Built:
    """Write the patched wheel into the folder `out`.

    Raises Refused: needs-build, pin-mismatch, verify-failed, target-exists, unsupported,
    too-large, path-escape; nothing is written then.
    """
    with open_wheel(given.path, given.sha256) as wheel:
        named = wheel_name(wheel.file_name)
        # Cheap comparisons first: a wheel of another release is named as such.
        version = label.version_of(wheel.read(f"{wheel.dist_info}/METADATA"), wheel.file_name)
        _refuse(_named_as_it_is(inputs, wheel, named, version))
        _refuse(_identity(inputs, wheel, version))
        contents = read_all(wheel, progress)
        check_record(wheel, contents)
        # Of a wheel of something else, what stands in the way of the changes is of no use.
        _refuse(basematch.compare(inputs.known, inputs.base, contents, wheel.file_name, inputs.pin))
        changes = sort_out(inputs.known, inputs.differing, wheel.members)
        way_out = (
            f"patchkit build --pin {inputs.pin.name} --stack {inputs.selection.name} --how cuda"
        )
        found = refuse(inputs.known, changes, inputs.base, wheel.members, inputs.title, way_out)
        _refuse(found)
        version, parts = _parts(inputs, wheel, named, version, contents, changes)
        file_name = f"{named.name}-{version}-{named.rest}.whl"
        path = os.path.join(out, file_name)
        packed = pack(parts, wheel, path)
        requires, license_id = facts_of(parts.put[f"{parts.dist_info}/METADATA"][0])
        return Built(
            path,
            file_name,
            inputs.dist,
            version,
            "overlay",
            packed.sha256,
            packed.content,
            packed.size,
            tuple(changes.put),
            changes.gone,
            changes.left_out,
            (Input("base-wheel", wheel.file_name, (("sha256", wheel.sha256),)),),
            requires,
            license_id,
            parts.stamp,
        )


def _refuse(findings: list[Finding]) -> None:
    if findings:
        raise Refused(*findings)


def _identity(inputs: Inputs, wheel: Wheel, version: str) -> list[Finding]:
    name = member_of(inputs.known, f"{_package_folder(inputs)}/_version.py")
    data = wheel.read(name) if name in wheel.members else None
    return basematch.identity(inputs.pin, wheel.file_name, version, inputs.version, data)


def _named_as_it_is(inputs: Inputs, wheel: Wheel, named: WheelName, version: str) -> list[Finding]:
    """The file's name against what the wheel holds: installers refuse one that says otherwise, and
    ours has its name."""
    from packaging.utils import canonicalize_name, canonicalize_version

    inside = wheel.stem.rpartition("-")[0]
    wanted = inputs.upstream.pypi or inside
    names = {canonicalize_name(n) for n in (named.name, inside, wanted)}
    if len(names) == 1 and canonicalize_version(named.version) == canonicalize_version(version):
        return []
    return [
        Finding(
            "pin-mismatch",
            f"{wheel.file_name} is not the wheel that its name says, or not one of {wanted}",
            Where(file=wheel.path),
            expected=f"{wanted} {version}, in the name and inside",
            found=f"{named.name} {named.version} in the name, {inside} {version} inside",
            next="give the wheel as the project published it, under its name",
        )
    ]


def _package_folder(inputs: Inputs) -> str:
    lead = f"{inputs.known.root}/" if inputs.known.root else ""
    return lead + inputs.known.package.replace(".", "/")


def _parts(
    inputs: Inputs,
    wheel: Wheel,
    named: WheelName,
    base_version: str,
    contents: Mapping[str, Content],
    changes: Changes,
) -> tuple[str, Parts]:
    """The new version, and everything that the wheel is to hold."""
    version = label.label(base_version, inputs.tree)
    name = wheel.stem.rpartition("-")[0]
    info = f"{name}-{version}.dist-info"

    def renamed(member: str) -> str:
        first, slash, rest = member.partition("/")
        if slash and first in (wheel.dist_info, f"{wheel.stem}.data"):
            return f"{name}-{version}{first[len(wheel.stem) :]}/{rest}"
        return member

    put: dict[str, tuple[bytes, bool]] = {}
    for path, file in inputs.files(changes.put).items():
        put[member_of(inputs.known, path)] = (file.data, file.mode == EXECUTABLE)
    top = f"{inputs.known.package.replace('.', '/')}/"
    for member in wheel.members:
        if member.startswith(top) and member.endswith("/_version.py") and member not in put:
            data = wheel.read(member)
            if made_by_setuptools(member, data):
                put[member] = (label.relabel_module(data, version), contents[member].executable)
    old = f"{wheel.dist_info}/"
    metadata = label.relabel_metadata(wheel.read(f"{old}METADATA"), version)
    put[f"{info}/METADATA"] = (metadata, False)
    put[f"{info}/WHEEL"] = (
        label.wheel_file(wheel.read(f"{old}WHEEL"), GENERATOR, list(named.tags)),
        False,
    )
    put[f"{info}/{STATE}"] = (dump_state(inputs.state(changes.left_out)), False)
    dropped = {member_of(inputs.known, path) for path in changes.gone}
    # A signature of the base's RECORD says nothing of ours.
    dropped |= {f"{old}{end}" for end in (NAME, *_SIGNATURES)}
    kept = {
        renamed(member): (row, contents[member])
        for member, row in wheel.members.items()
        if member not in dropped and renamed(member) not in put
    }
    clash = below_a_file({*kept, *put})
    if clash is not None:
        raise Refused(
            Finding(
                "target-exists",
                f"{show_path(clash)} would stand below a file of the wheel",
                Where(file=clash),
                expected="a folder, or nothing, above it",
                found="a file",
                next="give the new file another name, or build from source",
            )
        )
    stamp = wheel.members[f"{old}{NAME}"].date
    return version, Parts(info, kept, put, stamp)


def facts_of(metadata: bytes) -> tuple[tuple[str, ...], str]:
    """The requirements that METADATA states, and its licence expression."""
    from email.parser import BytesHeaderParser

    message = BytesHeaderParser().parsebytes(metadata)
    requires = tuple(str(v) for v in message.get_all("Requires-Dist", []))
    return requires, str(message.get("License-Expression") or "")
