"""A file in chunks reads as the list of its lines, whatever is done to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchkit.engine.chunks import LARGE, SIZE, Chunks
from patchkit.engine.content import Text
from patchkit.engine.text import Whole, join_lines

EDITS = st.lists(
    st.tuples(st.integers(0, 700), st.integers(0, 600), st.integers(0, 700)), max_size=6
)


def placed(edits: list[tuple[int, int, int]], size: int) -> list[tuple[int, int, list[bytes]]]:
    """Edits in order: each begins so many lines behind the one before it."""
    out, at = [], 0
    for n, (skip, gone, come) in enumerate(edits):
        first = min(at + skip, size)
        at = min(first + gone, size)
        out.append((first, at, [b"new %d %d\n" % (n, i) for i in range(come)]))
    return out


@given(st.integers(0, 2000), st.lists(EDITS, max_size=5))
def test_edits_on_edits_are_those_of_a_list(
    size: int, rounds: list[list[tuple[int, int, int]]]
) -> None:
    lines = [b"line %d\n" % n for n in range(size)]
    chunks = Chunks.of(lines)
    for edits in rounds:
        before = list(chunks)
        now = placed(edits, len(lines))
        after = chunks.replaced(now)
        for first, last, come in reversed(now):
            lines[first:last] = come
        assert list(chunks) == before
        chunks = after
        assert list(chunks) == lines
        assert len(chunks) == len(lines)
        assert join_lines(chunks) == b"".join(lines)
        assert all(0 < len(part) <= 2 * SIZE for part in chunks.parts)


@given(st.integers(0, 1200), st.integers(-1300, 1300), st.integers(-1300, 1300))
def test_it_is_indexed_as_a_list(size: int, first: int, last: int) -> None:
    lines = [b"%d\n" % n for n in range(size)]
    chunks = Chunks.of(lines).replaced([(0, min(size, 100), [b"x\n"] * 300)])
    lines[0 : min(size, 100)] = [b"x\n"] * 300
    assert chunks[first:last] == lines[first:last]
    assert chunks[::-2] == lines[::-2]
    if -len(lines) <= first < len(lines):
        assert chunks[first] == lines[first]
    else:
        try:
            chunks[first]
        except IndexError:
            return
        raise AssertionError("an index beyond the end gave a line")


def test_small_edits_do_not_cut_it_into_ever_smaller_chunks() -> None:
    lines = [b"%d\n" % n for n in range(20_000)]
    chunks = Chunks.of(lines)
    for n in range(3000):
        at = (n * 7919) % 19_000
        chunks = chunks.replaced([(at, at + 1, [b"new\n"])])
    assert len(chunks) == 20_000
    assert len(chunks.parts) < 4 * 20_000 / SIZE


def test_versions_share_the_chunks_that_no_edit_touched() -> None:
    text = Text([b"%d\n" % n for n in range(LARGE + 1)])
    assert isinstance(text.lines, Chunks)
    after = text.lines.replaced([(5, 6, [b"new\n"])])
    own = {id(part) for part in text.lines.parts}
    # The one that is edited, and the last, which is small and may be joined with a neighbour.
    assert sum(id(part) not in own for part in after.parts) <= 3


def test_the_lines_of_a_whole_file_are_found_again() -> None:
    data = b"a\nbb\n\nlast"
    whole = Whole(data)
    assert [whole.between(n, n + 1) for n in range(4)] == [b"a\n", b"bb\n", b"\n", b"last"]
    assert whole.between(1, 4) == b"bb\n\nlast"
    assert whole.between(2, 2) == b""
    assert Whole(b"").between(0, 0) == b""
