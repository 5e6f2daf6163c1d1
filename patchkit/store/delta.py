"""Git deltas: how one version of an object is told from another. Pure functions on bytes.

A delta is two sizes and a row of commands, "copy these bytes of the base" or "insert these". Ours
come from what the versions have in common at both ends (`between`), or from the exact places that
were overwritten (`patched`); no search, so making one costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

_COPY_LIMIT = 0xFFFFFF
_INSERT_LIMIT = 127
_FULL = b"\x7f"
"""The command to insert as many bytes as one command can."""
_BLOCK = 2048


def between(base: bytes, new: bytes) -> bytes | None:
    """The delta from `base` to `new`; None where it would save less than a third."""
    front = common_prefix(base, new)
    back = common_suffix(base, new, min(len(base), len(new)) - front)
    middle = new[front : len(new) - back]
    if len(middle) * 3 > len(new) * 2:
        return None
    out = bytearray(_size(len(base)) + _size(len(new)))
    _copy(out, 0, front)
    _insert(out, middle)
    _copy(out, len(base) - back, back)
    return bytes(out)


def replaced(size: int, spans: Sequence[tuple[int, int, bytes]]) -> bytes | None:
    """The delta of an object of `size` bytes some parts of which are replaced; None as above.

    spans: (offset, bytes there, bytes instead of them), sorted, not overlapping.
    """
    inserted = sum(len(data) for _, _, data in spans)
    new = size + inserted - sum(gone for _, gone, _ in spans)
    if inserted * 3 > new * 2:
        return None
    out = bytearray(_size(size) + _size(new))
    at = 0
    for offset, gone, data in spans:
        _copy(out, at, offset - at)
        _insert(out, data)
        at = offset + gone
    _copy(out, at, size - at)
    return bytes(out)


def patched(size: int, places: Iterable[tuple[int, bytes | bytearray]]) -> bytes:
    """The delta of an object of `size` bytes some places of which are overwritten.

    places: (offset, bytes), sorted, not overlapping.
    """
    out = bytearray(_size(size) * 2)
    at = 0
    for offset, data in places:
        _copy(out, at, offset - at)
        _insert(out, data)
        at = offset + len(data)
    _copy(out, at, size - at)
    return bytes(out)


def common_prefix(a: bytes, b: bytes) -> int:
    """Length of the longest common beginning."""
    limit = min(len(a), len(b))
    at = 0
    while at < limit and a[at : at + _BLOCK] == b[at : at + _BLOCK]:
        at += _BLOCK
    low, high = min(at, limit), min(at + _BLOCK, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: bytes, b: bytes, limit: int) -> int:
    """Length of the longest common end, at most `limit`."""
    size_a, size_b = len(a), len(b)
    at = 0
    while at + _BLOCK <= limit and (
        a[size_a - at - _BLOCK : size_a - at] == b[size_b - at - _BLOCK : size_b - at]
    ):
        at += _BLOCK
    low, high = at, min(at + _BLOCK, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if a[size_a - middle : size_a - low] == b[size_b - middle : size_b - low]:
            low = middle
        else:
            high = middle - 1
    return low


@lru_cache(1024)
def _size(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | (value & 0x7F))
        value >>= 7
    out.append(value)
    return bytes(out)


def _copy(out: bytearray, offset: int, size: int) -> None:
    # All seven argument bytes are always written: longer by a few bytes, and no branches.
    while size > _COPY_LIMIT:
        out += (_COPY_LIMIT << 40 | offset << 8 | 0xFF).to_bytes(8, "little")
        offset += _COPY_LIMIT
        size -= _COPY_LIMIT
    if size > 0:
        out += (size << 40 | offset << 8 | 0xFF).to_bytes(8, "little")


def _insert(out: bytearray, data: bytes | bytearray) -> None:
    size = len(data)
    if size <= _INSERT_LIMIT:
        if size:
            out.append(size)
            out += data
        return
    rest = size % _INSERT_LIMIT
    whole = (data[at : at + _INSERT_LIMIT] for at in range(0, size - rest, _INSERT_LIMIT))
    out += _FULL
    out += _FULL.join(whole)
    _insert(out, data[size - rest :])
