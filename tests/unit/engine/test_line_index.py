"""A file too large to be indexed as a whole gives the same places, and is read a few times only."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine import content, line_index
from patchkit.engine.content import Text
from patchkit.engine.line_index import LineIndex, folded, plain, runs

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b" a\n", b"\n", b"c"]), max_size=30)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is a very large one."""
    monkeypatch.setattr(line_index, "WHOLE", -1)
    monkeypatch.setattr(content, "WHOLE", -1)


@settings(suppress_health_check=list(HealthCheck))
@given(LINES, st.lists(LINES, min_size=1, max_size=4), st.booleans())
def test_the_places_are_those_of_the_whole_index(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], blocks: list[list[bytes]], said: bool
) -> None:
    for keys in (plain, folded, runs):
        whole = LineIndex(lines, keys, ())
        with monkeypatch.context() as patch:
            patch.setattr(line_index, "WHOLE", -1)
            sparse = LineIndex(lines, keys, blocks if said else [])
        for block in blocks:
            assert [list(at) for at in sparse.of(block)] == [list(at) for at in whole.of(block)]


@settings(suppress_health_check=list(HealthCheck))
@given(LINES, st.lists(LINES, min_size=1, max_size=4))
def test_a_block_is_found_where_it_is_in_a_small_file(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], blocks: list[list[bytes]]
) -> None:
    wanted = [Text(list(lines)).places(block) for block in blocks]
    with monkeypatch.context() as patch:
        patch.setattr(line_index, "WHOLE", -1)
        text = Text(list(lines))
        assert [text.places(block) for block in blocks] == wanted


class Read(list[bytes]):
    """Lines that count how often they are read as a whole."""

    times = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        Read.times += 1
        return super().__iter__()


def counted(keys: line_index.Keys, said: Iterable[list[bytes]], passes: int = 0) -> LineIndex:
    Read.times = 0
    return LineIndex(Read([b"%d\n" % n for n in range(50)]), keys, list(said), passes)


@pytest.mark.usefixtures("large")
def test_it_is_read_once_for_all_that_was_said_before() -> None:
    blocks = [[b"%d\n" % n] for n in range(60)]
    index = counted(plain, blocks)
    assert [list(index.of(block)[0]) for block in blocks] == [
        [n] if n < 50 else [] for n in range(60)
    ]
    assert Read.times == 1
    assert list(index.of([b"unsaid\n"])[0]) == []
    assert Read.times == 2


@pytest.mark.usefixtures("large")
def test_for_explanations_it_is_not_read_without_end() -> None:
    index = counted(folded, (), passes=3)
    found = [list(index.of([b" %d \n" % n])[0]) for n in range(6)]
    assert found == [[0], [1], [2], [], [], []]
    assert Read.times == 3
