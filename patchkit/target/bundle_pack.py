"""A packet as JSON and patch files, and back: what stands in a bundle beside the code.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from patchkit.errors import Finding, PatchkitError, Refused
from patchkit.series.lockfile import Lock
from patchkit.series.lockjson import dumps, loads
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_state import excerpt

if TYPE_CHECKING:
    from patchkit.engine.chain import Step

FORMAT = 1
MANIFEST = "bundle.json"

Read = Callable[[str], bytes]
"""Gives the bytes of a member of the bundle. Raises OSError where there is none."""


def packed(packets: Sequence[Packet]) -> dict[str, bytes]:
    """Member name -> bytes: the manifest, and every patch.

    Of a patch that is not selected only the sections for touched files are packed: its lines
    count, its content does not.
    """
    members: dict[str, bytes] = {}
    rows = []
    for packet in packets:
        patches = []
        for step in packet.steps:
            folder = f"patches/{packet.lock.pin.name}"
            name = f"{folder}/{step.patch.name}"
            if step.selected:
                members[name] = step.patch.data
            else:
                data = _lines_only(step, packet)
                if not data:
                    continue
                name = f"{folder}/.left-out/{step.patch.name}"
                members[name] = data
            patches.append(
                {
                    "name": step.patch.name,
                    "member": name,
                    "selected": step.selected,
                    "strip": 1 if step.strip is None else step.strip,
                    "reverse": step.reverse,
                }
            )
        lock = excerpt(packet.lock, packet.chain, packet.paths())
        rows.append(
            {
                "dist": packet.dist,
                "package": packet.package,
                "root": packet.root,
                "version": packet.version,
                "stack": packet.stack,
                "exclude": list(packet.exclude),
                "lock": json.loads(dumps(lock)),
                "patches": patches,
            }
        )
    body = {"format": FORMAT, "packets": rows}
    members[MANIFEST] = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode("ascii")
    return members


def unpacked(read: Read, *, patches: bool = True) -> list[Packet]:
    """The packets of a bundle. patches: with the patches, which checking does not need.

    Raises Refused(bad-lock) where the bundle is damaged.
    """
    try:
        body = json.loads(read(MANIFEST))
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']}")
        return [_packet(row, read, patches) for row in body["packets"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(_damaged(str(error) or type(error).__name__)) from None


def _packet(row: Mapping[str, Any], read: Read, patches: bool) -> Packet:
    lock = loads(json.dumps(row["lock"]).encode("ascii"), MANIFEST)
    stack = row["stack"]
    if stack is not None:
        lock = replace(lock, stacks={stack: lock.series})
    steps = tuple(_step(patch, read, lock) for patch in row["patches"]) if patches else ()
    return Packet(
        row["dist"],
        row["package"],
        row["root"],
        row["version"],
        stack,
        lock,
        steps,
        tuple(row["exclude"]),
        _never,
        stack is None and not row["exclude"],
    )


def _step(row: Mapping[str, Any], read: Read, lock: Lock) -> Step:
    from patchkit.engine.chain import Step
    from patchkit.engine.parse import parse

    data = read(row["member"])
    name, selected = row["name"], row["selected"]
    if selected and hashlib.sha256(data).hexdigest() != lock.digest_of(name):
        raise ValueError(f"{name} is not the patch that was locked")
    try:
        patch = parse(data, name)
    except PatchkitError as error:
        raise ValueError(f"{name}: {error.findings[0].message}") from None
    return Step(patch, row["strip"], row["reverse"], selected)


def _lines_only(step: Step, packet: Packet) -> bytes:
    """The sections of a left-out patch that change the line numbers of touched files."""
    from patchkit.engine.strip import Root, target_paths

    wanted = set(packet.paths())
    root = Root(1 if step.strip is None else step.strip, step.directory or "")
    out = []
    for section in step.patch.sections:
        try:
            paths = target_paths(section, root)
        except ValueError:
            continue
        if wanted.intersection(path for path in paths if path is not None):
            out.append(section.raw)
    return b"".join(out)


def _never(path: str) -> bool:
    """Native sources were refused when the bundle was made."""
    return False


def _damaged(reason: str) -> Finding:
    return Finding(
        "bad-lock",
        f"the bundle is damaged: {reason}",
        expected=f"a bundle of format {FORMAT}, as patchkit wrote it",
        found=reason,
        next="copy it again, or make it again: patchkit bundle",
    )
