from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchkit.store.delta import between, common_prefix, common_suffix, patched, replaced


def undelta(base: bytes, delta: bytes) -> bytes:
    """An independent reading of the format."""

    def size(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = delta[at]
            value |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                return value, at

    old, at = size(0)
    new, at = size(at)
    assert old == len(base)
    out = b""
    while at < len(delta):
        op, at = delta[at], at + 1
        if op & 0x80:
            numbers = []
            for bits, first in ((4, 0), (3, 4)):
                value = 0
                for n in range(bits):
                    if op >> (first + n) & 1:
                        value, at = value | delta[at] << 8 * n, at + 1
                numbers.append(value)
            offset, length = numbers[0], numbers[1] or 0x10000
            out += base[offset : offset + length]
        else:
            assert op
            out, at = out + delta[at : at + op], at + op
    assert len(out) == new
    return out


text = st.binary(max_size=40)


@given(text, text, text, text, st.integers(0, 3000))
def test_a_delta_gives_the_new_version_back(
    front: bytes, old: bytes, new: bytes, back: bytes, repeat: int
) -> None:
    a, b = front * repeat + old + back * repeat, front * repeat + new + back * repeat
    delta = between(a, b)
    if delta is not None:
        assert undelta(a, delta) == b


@given(text, text, st.integers(0, 200))
def test_common_ends_are_as_long_as_they_can_be(a: bytes, b: bytes, repeat: int) -> None:
    a, b = b"x" * repeat * 20 + a, b"x" * repeat * 20 + b
    front = common_prefix(a, b)
    assert a[:front] == b[:front]
    assert front == min(len(a), len(b)) or a[front] != b[front]
    limit = min(len(a), len(b)) - front
    back = common_suffix(a, b, limit)
    assert a[len(a) - back :] == b[len(b) - back :]
    assert back == limit or a[-back - 1] != b[-back - 1]


def test_overwritten_places_are_told_exactly() -> None:
    base = bytes(range(256)) * 300
    new = bytearray(base)
    new[0:20], new[70_000:70_020] = b"A" * 20, b"B" * 20
    delta = patched(len(base), [(0, b"A" * 20), (70_000, b"B" * 20)])
    assert undelta(base, delta) == bytes(new)
    assert len(delta) < 100


def test_versions_with_little_in_common_get_no_delta() -> None:
    assert between(b"a" * 1000, b"b" * 1000) is None


@given(st.binary(min_size=1, max_size=400), st.data())
def test_replaced_parts_give_the_new_version_back(base: bytes, data: st.DataObject) -> None:
    spans: list[tuple[int, int, bytes]] = []
    new, at = b"", 0
    for _ in range(data.draw(st.integers(0, 4))):
        offset = data.draw(st.integers(at, len(base)))
        gone = data.draw(st.integers(0, len(base) - offset))
        came = data.draw(st.binary(max_size=300))
        new += base[at:offset] + came
        spans.append((offset, gone, came))
        at = offset + gone
    new += base[at:]
    delta = replaced(len(base), spans)
    if delta is None:
        assert sum(len(came) for _, _, came in spans) * 3 > len(new) * 2
    else:
        assert undelta(base, delta) == new
