"""The bundle: one file that patches an installed package where nothing else is to be had.

A zip that Python runs: the modules of the installed target, the patches of a selection and their
lock. The same input gives the same bytes on any machine, so members are stored, not deflated:
compressors differ between builds of zlib.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from patchkit.engine.strip import Root
from patchkit.errors import Finding
from patchkit.target.bundle_pack import packed
from patchkit.target.installed_cut import IN, NATIVE, OUT, cut
from patchkit.target.installed_packet import Packet

LIMIT = 1_000_000
"""Bytes that a bundle may have before a note says so."""
PACKED = (
    "__init__.py",
    "errors.py",
    "engine/*.py",
    "files/__init__.py",
    "files/abandoned.py",
    "files/atomic.py",
    "files/growing.py",
    "files/keeping.py",
    "files/lock.py",
    "files/root.py",
    "files/transaction.py",
    "series/__init__.py",
    "series/lockfile.py",
    "series/lockjson.py",
    "series/state.py",
    "target/__init__.py",
    "target/bundle_main.py",
    "target/bundle_pack.py",
    "target/bundle_text.py",
    "target/bytecode.py",
    "target/dist_info.py",
    "target/installed.py",
    "target/installed_base.py",
    "target/installed_check.py",
    "target/installed_cut.py",
    "target/installed_hints.py",
    "target/installed_lost.py",
    "target/installed_packet.py",
    "target/installed_pin.py",
    "target/installed_parts.py",
    "target/installed_plan.py",
    "target/installed_replay.py",
    "target/installed_said.py",
    "target/installed_sites.py",
    "target/installed_state.py",
    "target/installed_tree.py",
    "target/installed_words.py",
    "target/installed_write.py",
    "target/record_csv.py",
    "upstreams/__init__.py",
    "upstreams/caches.py",
    "upstreams/setuptools_files.py",
)
"""The modules of a bundle, below the package's folder: standard library only, Python 3.10."""
_ENTRY = b"""\
# Made by patchkit. python THIS_FILE apply|check|revert [--site DIR]
import sys

if sys.version_info < (3, 10):
    sys.stderr.write(
        "error: Python 3.10 or newer is needed, this is %d.%d\\n"
        "  next:     run this file with the interpreter that has the package\\n"
        % sys.version_info[:2]
    )
    sys.exit(3)
from patchkit.target.bundle_main import main

sys.exit(main(sys.argv, __loader__.get_data))
"""
_SHEBANG = b"#!/usr/bin/env python3\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def make_bundle(packets: Sequence[Packet]) -> bytes:
    """The bytes of a bundle that applies `packets`."""
    members = {**_modules(), **packed(packets), "__main__.py": _ENTRY}
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, members[name])
    return buffer.getvalue()


def unfit(packets: Sequence[Packet]) -> list[Finding]:
    """What forbids a bundle: native sources, and patches of which nothing is left.

    There is no tree here: a native source inside the package may be there where the lock knows a
    base for it.
    """
    findings: list[Finding] = []
    for packet in packets:

        def place(path: str, packet: Packet = packet) -> str:
            if not packet.inside(path):
                return NATIVE if packet.native(path) else OUT
            steps = packet.chain.paths.get(path)
            new = steps is not None and steps[0].blob is None
            return NATIVE if packet.native(path) and new else IN

        for step in packet.steps:
            if step.selected:
                root = Root(1 if step.strip is None else step.strip, step.directory or "")
                findings += cut(step.patch, root, place, packet.exclude).findings
    return findings


def _modules() -> dict[str, bytes]:
    root = Path(__file__).resolve().parent.parent
    out = {}
    for pattern in PACKED:
        for path in sorted(root.glob(pattern)):
            name = f"patchkit/{path.relative_to(root).as_posix()}"
            # What a package's own __init__ offers needs modules that are not packed.
            empty = path.name == "__init__.py" and path.parent != root
            out[name] = b"" if empty else path.read_bytes()
    return out
