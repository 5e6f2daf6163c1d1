"""What to know after patching: stale caches, and a CUDA release that the driver is too old for."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import struct
import subprocess

from patchkit.engine.model import File
from patchkit.errors import Finding, Where
from patchkit.target.dist_info import Dist, on_disk
from patchkit.target.installed_plan import Plan
from patchkit.upstreams.caches import Stale, stale_caches

_RUNTIME = re.compile(rb"libcudart\.so\.(\d+)")
_DRIVER = re.compile(r"CUDA Version\s*:\s*(\d+)\.(\d+)")
_LIBRARIES = 8
"""Native libraries that are looked at before giving up."""


def caches_of(plan: Plan) -> tuple[Stale, ...]:
    """Caches that may hold code of the files that a plan changes."""
    if plan.part is None:
        return ()
    part = plan.part
    return stale_caches(
        {p: _data(part.base.get(p)) + b"\n" + _data(part.files.get(p)) for p in plan.changed}
    )


def cuda_note(dist: Dist) -> Finding | None:
    """A note where the package was built for a newer CUDA major than the driver knows.

    None where it is built for none, there is no nvidia-smi, or all is well.
    """
    if shutil.which("nvidia-smi") is None:
        return None
    built = wheel_cuda(dist)
    driver = driver_cuda() if built is not None else None
    if built is None or driver is None or built <= driver[0]:
        return None
    return Finding(
        "unsupported",
        f"{dist.name} {dist.version} was built for CUDA {built}, and the driver knows CUDA "
        f"{driver[0]}.{driver[1]} only: it will not start on this machine",
        Where(file=os.path.join(dist.site, dist.folder)),
        expected=f"a driver for CUDA {built}, or a wheel for CUDA {driver[0]}",
        found=f"CUDA Version {driver[0]}.{driver[1]}, as nvidia-smi says",
        next=f"update the driver, or install the wheel for CUDA {driver[0]}",
        note=True,
    )


def wheel_cuda(dist: Dist) -> int | None:
    """The CUDA major whose runtime the package's own native libraries need."""
    looked = 0
    for row in dist.record.rows:
        if not row.path.endswith(".so") or row.path.count("/") > 1:
            continue
        looked += 1
        if looked > _LIBRARIES:
            return None
        for name in needed_libraries(on_disk(dist.site, row.path)):
            found = _RUNTIME.fullmatch(name)
            if found:
                return int(found[1])
    return None


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA release that the driver knows, as nvidia-smi states it."""
    try:
        run = subprocess.run(
            ["nvidia-smi"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _DRIVER.search(run.stdout)
    return (int(found[1]), int(found[2])) if found else None


def needed_libraries(path: str) -> list[bytes]:
    """The DT_NEEDED names of a 64-bit little-endian ELF file; none for anything else.

    https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html
    """
    try:
        with open(path, "rb") as stream:
            if stream.read(6) != b"\x7fELF\x02\x01":
                return []
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _needed(data)
    except (OSError, ValueError, OverflowError, struct.error):
        return []


def _needed(data: mmap.mmap) -> list[bytes]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loads: list[tuple[int, int, int]] = []
    dynamic: list[tuple[int, int]] = []
    for at in range(table, table + size * min(count, 64), size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1:
            loads.append((address, offset, length))
        elif kind == 2:
            dynamic = [
                struct.unpack_from("<QQ", data, place)
                for place in range(offset, offset + min(length, 1 << 16), 16)
            ]
    names = [value for tag, value in dynamic if tag == 1]
    strings = next((value for tag, value in dynamic if tag == 5), None)
    if strings is None:
        return []
    base = next(
        (strings - address + offset for address, offset, n in loads if 0 <= strings - address < n),
        None,
    )
    if base is None:
        return []
    return [data[base + n : data.find(b"\0", base + n)] for n in names]


def _data(file: File | None) -> bytes:
    return file.data if file is not None else b""
