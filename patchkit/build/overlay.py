"""The official wheel with the changed files in place of its own: nothing compiled, nothing run.

First everything is read and compared; the output folder is not even made before the last check
holds. Compressed bytes of members that do not change are copied.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.build import basematch, label
from patchkit.build.basewheel import BaseWheel, WheelName, wheel_name
from patchkit.build.built import Built, Input
from patchkit.build.changes import Changes, member_of, refuse, sort_out
from patchkit.build.content import Content, check_record, content_digest, read_all, record_row
from patchkit.build.inputs import Inputs
from patchkit.build.wheelfile import Member, Wheel, open_wheel
from patchkit.build.zipwriter import ZipWriter
from patchkit.engine.model import EXECUTABLE
from patchkit.errors import Finding, Refused
from patchkit.files.atomic import make_folder
from patchkit.files.growing import Growing, remove_file
from patchkit.source.base import Progress, silent
from patchkit.target.dist_info import STATE
from patchkit.target.installed_state import dump_state
from patchkit.target.record_csv import NAME
from patchkit.upstreams.setuptools_files import made_by_setuptools

GENERATOR = "patchkit-overlay 1"
"""In WHEEL. The number is raised whenever the same inputs would give other bytes."""
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True)
class _Plan:
    """kept: new name -> member of the base. put: new name -> bytes and executable bit."""

    version: str
    file_name: str
    dist_info: str
    kept: Mapping[str, Member]
    put: Mapping[str, tuple[bytes, bool]]


def build(inputs: Inputs, given: BaseWheel, out: str, progress: Progress = silent) -> Built:
    """Write the patched wheel into the folder `out`.

    Raises Refused: needs-build, pin-mismatch, verify-failed, target-exists, unsupported,
    too-large, path-escape; nothing is written then.
    """
    with open_wheel(given.path, given.sha256) as wheel:
        named = wheel_name(wheel.file_name)
        # Cheap comparisons first: a wheel of another release is named as such.
        version = label.version_of(wheel.read(f"{wheel.dist_info}/METADATA"), wheel.file_name)
        _refuse(_identity(inputs, wheel, version))
        contents = read_all(wheel, progress)
        check_record(wheel, contents)
        found = basematch.compare(inputs.known, inputs.base, contents, wheel.file_name, inputs.pin)
        changes = sort_out(inputs.known, inputs.differing, wheel.members)
        way_out = (
            f"patchkit build --pin {inputs.pin.name} --stack {inputs.selection.name} --how cuda"
        )
        found += refuse(inputs.known, changes, inputs.base, wheel.members, inputs.title, way_out)
        _refuse(found)
        plan = _plan(inputs, wheel, named, version, contents, changes)
        return _write(inputs, given, wheel, plan, contents, changes, out)


def _refuse(findings: list[Finding]) -> None:
    if findings:
        raise Refused(*findings)


def _identity(inputs: Inputs, wheel: Wheel, version: str) -> list[Finding]:
    name = member_of(inputs.known, f"{_package_folder(inputs)}/_version.py")
    data = wheel.read(name) if name in wheel.members else None
    return basematch.identity(inputs.pin, wheel.file_name, version, inputs.version, data)


def _package_folder(inputs: Inputs) -> str:
    lead = f"{inputs.known.root}/" if inputs.known.root else ""
    return lead + inputs.known.package.replace(".", "/")


def _plan(
    inputs: Inputs,
    wheel: Wheel,
    named: WheelName,
    base_version: str,
    contents: Mapping[str, Content],
    changes: Changes,
) -> _Plan:
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
        renamed(member): row
        for member, row in wheel.members.items()
        if member not in dropped and renamed(member) not in put
    }
    file_name = f"{named.name}-{version}-{named.rest}.whl"
    return _Plan(version, file_name, info, kept, put)


def _write(
    inputs: Inputs,
    given: BaseWheel,
    wheel: Wheel,
    plan: _Plan,
    contents: Mapping[str, Content],
    changes: Changes,
    out: str,
) -> Built:
    own = f"{plan.dist_info}/{NAME}"
    order = sorted({*plan.kept, *plan.put}, key=lambda n: (n.startswith(plan.dist_info), n))
    rows: list[tuple[str, bool, str]] = []
    record = []
    for name in order:
        if name in plan.put:
            data, executable = plan.put[name]
            sha256, size = hashlib.sha256(data).hexdigest(), len(data)
        else:
            member = plan.kept[name]
            sha256, size = contents[member.name].sha256, member.size
            executable = member.executable
        rows.append((name, executable, sha256))
        record.append((name, *record_row(sha256, size)))
    record.append((own, "", ""))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(record)
    record_data = text.getvalue().encode("utf-8", "surrogateescape")
    rows.append((own, False, hashlib.sha256(record_data).hexdigest()))

    stamp = wheel.members[f"{wheel.dist_info}/{NAME}"].date
    make_folder(out)
    path = os.path.join(out, plan.file_name)
    temporary = f"{path}.{os.getpid()}.part"
    remove_file(temporary)
    with Growing(temporary) as file:
        writer = ZipWriter(file)
        for name in order:
            if name in plan.put:
                data, executable = plan.put[name]
                writer.store(name, data, executable, stamp)
            else:
                m = plan.kept[name]
                packing = (m.method, m.crc, m.packed, m.size)
                writer.copy(name, packing, m.executable, m.date, wheel.packed(m))
        writer.store(own, record_data, False, stamp)
        writer.finish()
        file.keep(path)
    metadata = plan.put[f"{plan.dist_info}/METADATA"][0]
    requires, license_id = facts_of(metadata)
    return Built(
        path,
        plan.file_name,
        inputs.dist,
        plan.version,
        "overlay",
        writer.sha256,
        content_digest(rows),
        writer.size,
        tuple(changes.put),
        changes.gone,
        changes.left_out,
        (Input("base-wheel", wheel.file_name, (("sha256", wheel.sha256),)),),
        requires,
        license_id,
        stamp,
    )


def facts_of(metadata: bytes) -> tuple[tuple[str, ...], str]:
    """The requirements that METADATA states, and its licence expression."""
    from email.parser import BytesHeaderParser

    message = BytesHeaderParser().parsebytes(metadata)
    requires = tuple(str(v) for v in message.get_all("Requires-Dist", []))
    return requires, str(message.get("License-Expression") or "")
