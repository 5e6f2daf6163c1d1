"""Writes a git pack (version 2) and its index, without a git process.

Why our own: `git fast-import` compresses and hashes every intermediate version of every file;
for 500 patches that alone costs more than parsing and applying them. Here a version is written
as a delta against an earlier one of the same pack, made from what is common at both ends, and
small objects are stored, not compressed. Packs are plain, frozen formats (git's own
Documentation/gitformat-pack); `git fsck --strict` judges them in tests.

A pack is built under a temporary name that git's own clean-up knows (tmp_pack_…), synced,
renamed, and only then gets its index, which makes it visible: a process killed at any moment
leaves no half object behind.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from functools import lru_cache

from patchkit.files.growing import Growing

_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_OFS_DELTA = 6
_SPILL = 16 << 20
_STORED_LIMIT = 65535
_TINY = 200
_HEAD = struct.Struct(">4sII")
_BLOCK = struct.Struct("<3sHH")
_STORED = b"\x78\x01\x01"
"""A zlib stream's header, and that of its only block: the last one, not compressed."""


def object_id(kind: str, data: bytes | bytearray) -> bytes:
    """The 20 bytes of an object's id."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


class Pack:
    """One pack being written. `close` makes it visible; `abandon` leaves nothing.

    level: zlib level for whole objects; 0 stores them (cheap to write, larger).
    """

    def __init__(self, folder: str, *, level: int = 0) -> None:
        self.folder = folder
        self.level = level
        self._offsets: dict[bytes, int] = {}
        self._crcs: dict[bytes, int] = {}
        self._pending: list[bytes] = [_HEAD.pack(b"PACK", 2, 0)]
        self._pending_size = 0
        self._at = _HEAD.size
        self._file: Growing | None = None

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._offsets

    def add(self, kind: str, data: bytes | bytearray, oid: bytes | None = None) -> bytes:
        """Add a whole object (once); give its id. oid: the id where the caller knows it."""
        oid = oid or object_id(kind, data)
        if oid not in self._offsets:
            self._put(oid, _head(_TYPES[kind], len(data)), data)
        return oid

    def add_delta(self, oid: bytes, base: bytes, delta: bytes | bytearray) -> None:
        """Add the object `oid` as `delta` against the object `base` of this pack."""
        if oid in self._offsets:
            return
        distance = self._at - self._offsets[base]
        tail = [distance & 0x7F]
        distance >>= 7
        while distance:
            distance -= 1
            tail.append(0x80 | (distance & 0x7F))
            distance >>= 7
        tail.reverse()
        self._put(oid, _head(_OFS_DELTA, len(delta)) + bytes(tail), delta)

    def _put(self, oid: bytes, head: bytes, data: bytes | bytearray) -> None:
        if len(data) <= (_STORED_LIMIT if self.level == 0 else _TINY):
            entry = stored(data, head)
        else:
            entry = head + zlib.compress(data, self.level)
        self._offsets[oid] = self._at
        self._crcs[oid] = zlib.crc32(entry)
        self._pending.append(entry)
        self._at += len(entry)
        self._pending_size += len(entry)
        if self._pending_size > _SPILL:
            self._spill()

    def _spill(self) -> Growing:
        if self._file is None:
            self._file = Growing(self._temporary("pack"))
        self._file.write(self._pending)
        self._pending.clear()
        self._pending_size = 0
        return self._file

    def _temporary(self, kind: str) -> str:
        return os.path.join(self.folder, f"tmp_{kind}_{os.getpid()}_{os.urandom(6).hex()}")

    def abandon(self) -> None:
        """Drop everything that was added."""
        self._pending.clear()
        if self._file is not None:
            self._file.drop()

    def close(self) -> str | None:
        """Finish the pack; give its path, or None where nothing was added.

        Raises EnvironmentFault(disk); nothing is visible then.
        """
        if not self._offsets:
            return None
        head = _HEAD.pack(b"PACK", 2, len(self._offsets))
        digest = hashlib.sha1(usedforsecurity=False)
        in_memory = self._file is None
        if in_memory:
            self._pending[0] = head
            for entry in self._pending:
                digest.update(entry)
        with self._spill() as pack, Growing(self._temporary("idx")) as index:
            if not in_memory:  # the count was not known when the head was written
                pack.overwrite_head(head)
                for block in pack.blocks():
                    digest.update(block)
            pack.write((digest.digest(),))
            index.write((_index(self._offsets, self._crcs, digest.digest()),))
            final = os.path.join(self.folder, f"pack-{digest.hexdigest()}")
            # Replaces a pack of the same content: that also mends one that was damaged on disk.
            pack.keep(final + ".pack", 0o444)
            index.keep(final + ".idx", 0o444)
        return final + ".pack"


@lru_cache(1024)  # small objects of one kind have few sizes
def _head(kind: int, size: int) -> bytes:
    first = (kind << 4) | (size & 0x0F)
    size >>= 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first = size & 0x7F
        size >>= 7
    out.append(first)
    return bytes(out)


def stored(data: bytes | bytearray, head: bytes = b"") -> bytes:
    """`data` (at most 65,535 bytes) as a zlib stream of one stored block, behind `head`.

    Setting up zlib costs more than a small object is worth.
    """
    size = len(data)
    block = _BLOCK.pack(_STORED, size, size ^ 0xFFFF)
    return b"".join((head, block, data, zlib.adler32(data).to_bytes(4, "big")))


def _index(offsets: dict[bytes, int], crcs: dict[bytes, int], checksum: bytes) -> bytes:
    ids = sorted(offsets)
    fanout = [0] * 256
    for oid in ids:
        fanout[oid[0]] += 1
    total = 0
    for byte in range(256):
        total += fanout[byte]
        fanout[byte] = total
    count = len(ids)
    far = [oid for oid in ids if offsets[oid] > 0x7FFFFFFF]
    place = {oid: 0x80000000 | number for number, oid in enumerate(far)}
    body = b"".join(
        (
            b"\xfftOc",
            struct.pack(">I256I", 2, *fanout),
            b"".join(ids),
            struct.pack(f">{count}I", *(crcs[oid] for oid in ids)),
            struct.pack(f">{count}I", *(place.get(oid, offsets[oid]) for oid in ids)),
            struct.pack(f">{len(far)}Q", *(offsets[oid] for oid in far)),
            checksum,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
