"""Who opens, reads, writes or makes something in a folder: told by the kernel (inotify).

It sees every process, git's too, and needs no hook in the one that is watched.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ALL = 0x00000FFF
"""IN_ALL_EVENTS: access, modify, attributes, close, open, move, create, delete."""
_HEAD = struct.Struct("iIII")
_NAMES = {
    0x001: "read",
    0x002: "written",
    0x004: "attributes",
    0x008: "closed after writing",
    0x010: "closed",
    0x020: "opened",
    0x040: "moved away",
    0x080: "moved here",
    0x100: "made",
    0x200: "removed",
}


@contextmanager
def watched(at: Path) -> Iterator[list[str]]:
    """What is done below `at` during the block; complete when the block has ended."""
    seen: list[str] = []
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    folders = {}
    for folder in (at, *sorted(p for p in at.rglob("*") if p.is_dir() and not p.is_symlink())):
        number = library.inotify_add_watch(handle, os.fsencode(folder), _ALL)
        assert number >= 0, os.strerror(ctypes.get_errno())
        folders[number] = folder
    try:
        yield seen
    finally:
        seen += _events(handle, folders)
        os.close(handle)


def _events(handle: int, folders: dict[int, Path]) -> Iterator[str]:
    while True:
        try:
            data = os.read(handle, 1 << 16)
        except BlockingIOError:
            return
        while data:
            number, mask, _, size = _HEAD.unpack_from(data)
            name = data[_HEAD.size : _HEAD.size + size].rstrip(b"\0")
            data = data[_HEAD.size + size :]
            what = [word for bit, word in _NAMES.items() if mask & bit] or [hex(mask)]
            yield f"{folders[number].name}/{os.fsdecode(name)}: {', '.join(what)}"
