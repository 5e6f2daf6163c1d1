"""A zip in which nothing depends on clock, umask, system or compression library.

Members are written in the order given, without extra fields. New ones are stored, since two
versions of zlib give two results; copied ones keep the compressed bytes that they had.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable

from patchkit.errors import Finding, Refused
from patchkit.files.growing import Growing

LIMIT = 0xFFFFFFFF
"""Bytes; beyond it a zip needs the 64-bit extension, which is not written."""
_UTF8 = 0x800
_UNIX = 3
_VERSION = 20
Date = tuple[int, int, int, int, int, int]


class ZipWriter:
    """Writes members to `file`. sha256, size: of what was written, right after `finish`."""

    def __init__(self, file: Growing) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._directory: list[bytes] = []
        self.size = 0

    @property
    def sha256(self) -> str:
        """64 hex digits."""
        return self._digest.hexdigest()

    def store(self, name: str, data: bytes, executable: bool, date: Date) -> None:
        """Add a member uncompressed."""
        crc, size = zlib.crc32(data), len(data)
        self._member(name, (0, crc, size, size), executable, date, (data,))

    def copy(
        self,
        name: str,
        packing: tuple[int, int, int, int],
        executable: bool,
        date: Date,
        blocks: Iterable[bytes],
    ) -> None:
        """Add a member from bytes that are compressed already.

        packing: method, CRC-32, compressed and expanded size.
        """
        self._member(name, packing, executable, date, blocks)

    def finish(self) -> None:
        """Write the directory."""
        start, count = self.size, len(self._directory)
        for row in self._directory:
            self._write(row)
        length = self.size - start
        if count >= 0xFFFF or self.size > LIMIT:
            raise Refused(_too_large(self.size))
        self._write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, length, start, 0))

    def _member(
        self,
        name: str,
        packing: tuple[int, int, int, int],
        executable: bool,
        date: Date,
        blocks: Iterable[bytes],
    ) -> None:
        method, crc, packed, size = packing
        raw = name.encode("utf-8")
        at = self.size
        if max(packed, size, at) > LIMIT:
            raise Refused(_too_large(max(packed, size, at)))
        flags = 0 if raw.isascii() else _UTF8
        head = (flags, method, *_dos(date), crc, packed, size, len(raw), 0)
        self._write(struct.pack("<4sH4H3I2H", b"PK\3\4", _VERSION, *head) + raw)
        for block in blocks:
            self._write(block)
        mode = (0o100755 if executable else 0o100644) << 16
        self._directory.append(
            struct.pack(
                "<4s2B5H3I5H2I",
                b"PK\1\2",
                _VERSION,
                _UNIX,
                _VERSION,
                *head,
                0,
                0,
                0,
                mode,
                at,
            )
            + raw
        )

    def _write(self, data: bytes) -> None:
        self._file.write((data,))
        self._digest.update(data)
        self.size += len(data)


def _dos(date: Date) -> tuple[int, int]:
    """Time and day as zip has them, in steps of two seconds."""
    year, month, day, hour, minute, second = date
    return (
        hour << 11 | minute << 5 | second // 2,
        max(year - 1980, 0) << 9 | month << 5 | day,
    )


def _too_large(size: int) -> Finding:
    return Finding(
        "too-large",
        "the wheel would be larger than a zip without the 64-bit extension can be",
        expected=f"at most {LIMIT} bytes",
        found=f"{size} bytes",
        next="build it from source instead",
    )
