"""Members in, a wheel out: RECORD written, order and bytes the same every time."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchkit.build.content import Content, as_record, content_digest
from patchkit.build.wheelfile import Member, Wheel
from patchkit.build.zipwriter import Date, ZipWriter
from patchkit.files.abandoned import sweep, unfinished
from patchkit.files.atomic import make_folder
from patchkit.files.growing import Growing, remove_file
from patchkit.target.record_csv import NAME

_PART = ".part"


@dataclass(frozen=True)
class Parts:
    """What a wheel is to hold, RECORD apart. kept: new name -> member of the wheel it comes from,
    with what was read of it. put: new name -> bytes and executable bit. stamp: date of what is
    put."""

    dist_info: str
    kept: Mapping[str, tuple[Member, Content]]
    put: Mapping[str, tuple[bytes, bool]]
    stamp: Date


@dataclass(frozen=True)
class Packed:
    """sha256 and size of the file, and its content digest."""

    sha256: str
    content: str
    size: int


def pack(parts: Parts, source: Wheel, path: str) -> Packed:
    """Write the wheel to `path`, whole or not at all; its folder is made.

    dist-info comes last, RECORD at its very end, as the format wants it.
    """
    own = f"{parts.dist_info}/{NAME}"
    order = sorted({*parts.kept, *parts.put}, key=lambda n: (n.startswith(parts.dist_info), n))
    rows = [(name, *_facts(parts, name)) for name in order]
    record = _record([(name, sha256, size) for name, _, sha256, size in rows], own)
    contents = [(name, executable, sha256) for name, executable, sha256, _ in rows]
    contents.append((own, False, hashlib.sha256(record).hexdigest()))

    make_folder(os.path.dirname(path))
    temporary = unfinished(path, _PART)
    remove_file(temporary)
    with Growing(temporary) as file:
        writer = ZipWriter(file)
        for name in order:
            if name in parts.put:
                data, executable = parts.put[name]
                writer.store(name, data, executable, parts.stamp)
            else:
                m, _ = parts.kept[name]
                packing = (m.method, m.crc, m.packed, m.size)
                writer.copy(name, packing, m.executable, m.date, source.packed(m))
        writer.store(own, record, False, parts.stamp)
        writer.finish()
        file.keep(path)
    sweep(path, _PART)
    return Packed(writer.sha256, content_digest(contents), writer.size)


def _facts(parts: Parts, name: str) -> tuple[bool, str, int]:
    if name in parts.put:
        data, executable = parts.put[name]
        return executable, hashlib.sha256(data).hexdigest(), len(data)
    member, content = parts.kept[name]
    return member.executable, content.sha256, member.size


def _record(rows: Iterable[tuple[str, str, int]], own: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((name, as_record(sha256), size) for name, sha256, size in rows)
    writer.writerow((own, "", ""))
    return text.getvalue().encode("utf-8", "surrogateescape")
