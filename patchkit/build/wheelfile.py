"""A wheel that is only read: its digest first, then its members, and nothing taken on trust.

What a wheel is: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import disk_fault
from patchkit.target.record_csv import MAX_BYTES, NAME, RecordFile, parse_record

MAX_MEMBERS = 60_000
"""Fewer than the 65,535 that a zip without its 64-bit extension can hold."""
MAX_TOTAL = 16 << 30
"""Bytes of all members expanded; a CUDA wheel has about 1 GB."""
MAX_RATIO = 100
"""Expanded bytes for each byte of the file. Source code has 4 to 10."""
MAX_METADATA = 8 << 20
_BLOCK = 1 << 20
_LOCAL = struct.Struct("<4s5H3I2H")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Member:
    """One file of a wheel. packed: its compressed bytes. date: (year, …, second) as zip has it."""

    name: str
    size: int
    packed: int
    crc: int
    method: int
    executable: bool
    date: tuple[int, int, int, int, int, int]
    info: zipfile.ZipInfo


class Wheel:
    """An open wheel whose structure was checked. sha256: of the whole file. size: in bytes."""

    def __init__(self, path: str, stream: BinaryIO, sha256: str) -> None:
        self.path = path
        self.file_name = os.path.basename(path)
        self.sha256 = sha256
        self.size = os.fstat(stream.fileno()).st_size
        self._stream = stream
        self._zip = _opened(path, stream)
        self.members = _members(path, self._zip, self.size)
        self.dist_info = _dist_info(path, self.members)

    @property
    def stem(self) -> str:
        """`NAME-VERSION` of the dist-info folder."""
        return self.dist_info.removesuffix(".dist-info")

    def blocks(self, member: Member) -> Iterator[bytes]:
        """The expanded bytes of a member, its CRC checked. Raises Refused(verify-failed)."""
        try:
            with self._zip.open(member.info) as stream:
                while block := stream.read(_BLOCK):
                    yield block
        except _DAMAGE as error:
            raise Refused(_damaged(self.path, str(error), member.name)) from None

    def read(self, name: str, limit: int = MAX_METADATA) -> bytes:
        """A member as a whole. Raises Refused(unsupported, too-large, verify-failed)."""
        member = self.members.get(name)
        if member is None:
            raise Refused(_not_a_wheel(self.path, f"it has no {name}"))
        if member.size > limit:
            raise Refused(_too_large(self.path, f"{name} has {member.size} bytes", f"{limit}"))
        return b"".join(self.blocks(member))

    def packed(self, member: Member) -> Iterator[bytes]:
        """The compressed bytes of a member as they stand in the file."""
        try:
            self._stream.seek(member.info.header_offset)
            head = _LOCAL.unpack(self._stream.read(_LOCAL.size))
            self._stream.seek(head[9] + head[10], os.SEEK_CUR)
            left = member.packed
            while left:
                block = self._stream.read(min(left, _BLOCK))
                if not block:
                    raise Refused(_damaged(self.path, "the file ends early", member.name))
                left -= len(block)
                yield block
        except (OSError, struct.error) as error:
            raise Refused(_damaged(self.path, str(error), member.name)) from None

    @cached_property
    def record(self) -> RecordFile:
        """Its RECORD."""
        name = f"{self.dist_info}/{NAME}"
        return parse_record(self.read(name, MAX_BYTES), f"{self.file_name}: {name}")


_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


@contextmanager
def open_wheel(path: str, sha256: str) -> Iterator[Wheel]:
    """The wheel `path`, which must have this sha256 (64 hex digits).

    One descriptor serves the digest and all reads, so that what was verified is what is read.
    Raises Refused: verify-failed (another digest, damage), unsupported (not a wheel), too-large
    (a zip bomb), path-escape; EnvironmentFault(disk).
    """
    try:
        stream = open(path, "rb")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise disk_fault(error, path, "read") from error
    with stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != sha256:
            raise Refused(
                Finding(
                    "verify-failed",
                    f"{os.path.basename(path)} is not the wheel that is meant",
                    Where(file=path),
                    expected=f"sha256:{sha256}",
                    found=f"sha256:{found}",
                    next="fetch it again, or name the digest that the release page states",
                )
            )
        stream.seek(0)
        yield Wheel(path, stream, found)


def _opened(path: str, stream: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except _DAMAGE as error:
        raise Refused(_damaged(path, str(error))) from None


def _members(path: str, archive: zipfile.ZipFile, size: int) -> dict[str, Member]:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise Refused(_too_large(path, f"it has {len(infos)} members", f"{MAX_MEMBERS} members"))
    total = sum(info.file_size for info in infos)
    if total > min(MAX_TOTAL, MAX_RATIO * max(size, _BLOCK)):
        limit = f"{MAX_TOTAL} bytes, and {MAX_RATIO} for each byte of the file"
        raise Refused(_too_large(path, f"its members expand to {total} bytes", limit))
    end = 0
    for info in sorted(infos, key=lambda i: i.header_offset):
        # Members that share bytes are how a small file expands without end.
        if info.header_offset < end:
            raise Refused(_not_a_wheel(path, "members overlap", info.filename))
        end = info.header_offset + _LOCAL.size + info.compress_size
    out: dict[str, Member] = {}
    for info in infos:
        if info.is_dir():
            continue
        reason = _unfit(info) or ("it comes twice" if info.filename in out else None)
        if reason is not None:
            raise Refused(_bad_member(path, info, reason))
        mode = info.external_attr >> 16
        out[info.filename] = Member(
            info.filename,
            info.file_size,
            info.compress_size,
            info.CRC,
            info.compress_type,
            bool(mode & 0o111),
            info.date_time,
            info,
        )
    clash = below_a_file(out)
    if clash is not None:
        raise Refused(_not_a_wheel(path, "a member is both a file and a folder", clash))
    return out


def below_a_file(names: Collection[str]) -> str | None:
    """A name of `names` whose folder is the name of a file; None where they can all be written."""
    for name in names:
        at = name.rfind("/")
        while at > 0:
            if name[:at] in names:
                return name
            at = name.rfind("/", 0, at)
    return None


def _unfit(info: zipfile.ZipInfo) -> str | None:
    """Why a member may not be in a wheel."""
    reason = unsafe(info.orig_filename)
    if reason is not None or info.orig_filename != info.filename:
        return reason or "its name ends early"
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "it is a link or a special file"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    if info.compress_type not in _METHODS:
        return f"its compression method is {info.compress_type}"
    return None


def _dist_info(path: str, members: dict[str, Member]) -> str:
    folders = {n.partition("/")[0] for n in members if n.partition("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise Refused(_not_a_wheel(path, f"it has {len(folders)} dist-info folders"))
    folder = folders.pop()
    for name in (NAME, "METADATA", "WHEEL"):
        if f"{folder}/{name}" not in members:
            raise Refused(_not_a_wheel(path, f"it has no {folder}/{name}"))
    return folder


def _damaged(path: str, reason: str, member: str | None = None) -> Finding:
    return Finding(
        "verify-failed",
        f"{os.path.basename(path)} is damaged: {reason or 'it cannot be read'}",
        Where(file=member or path),
        expected="a whole wheel",
        found="one that is cut short or changed",
        next="fetch it again",
    )


def _not_a_wheel(path: str, reason: str, member: str | None = None) -> Finding:
    return Finding(
        "unsupported",
        f"{os.path.basename(path)} is not a wheel that can be built on: {reason}",
        Where(file=member or path),
        expected="a wheel with one dist-info folder and its RECORD",
        next="give the wheel as the project published it",
    )


def _bad_member(path: str, info: zipfile.ZipInfo, reason: str) -> Finding:
    escape = unsafe(info.orig_filename) is not None
    return Finding(
        "path-escape" if escape else "unsupported",
        f"{os.path.basename(path)} holds a member that may not be used: {reason}",
        Where(file=info.orig_filename),
        expected="plain files inside the wheel, each once",
        next="give the wheel as the project published it",
    )


def _too_large(path: str, found: str, limit: str) -> Finding:
    return Finding(
        "too-large",
        f"{os.path.basename(path)} is larger than a wheel can be",
        Where(file=path),
        expected=f"at most {limit}",
        found=found,
        next="give the wheel as the project published it",
    )
