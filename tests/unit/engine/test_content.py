"""Lines of a file, and searching them."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from patchkit.engine.content import FEW, Text, TextFile, text_of
from patchkit.engine.line_index import fold
from patchkit.engine.model import EXECUTABLE, File, blob_id
from patchkit.engine.text import split_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"aa\n"]), max_size=200)


def slowly(lines: list[bytes], block: list[bytes]) -> list[int]:
    return [i for i in range(len(lines)) if block and lines[i : i + len(block)] == block]


@given(LINES, LINES.filter(lambda block: len(block) < 8))
def test_places_are_those_of_a_plain_search(lines: list[bytes], block: list[bytes]) -> None:
    assert Text(lines).places(block) == slowly(lines, block)


@given(LINES, st.integers(0, 200), st.integers(1, 9))
def test_blocks_of_the_text_itself_are_found(lines: list[bytes], at: int, size: int) -> None:
    block = lines[at : at + size]
    assert Text(lines).places(block) == slowly(lines, block)


def test_common_lines_are_searched_in_linear_time() -> None:
    lines = [b"    pass\n"] * 50_000
    text = Text(lines)
    began = time.process_time()
    assert text.places([b"    pass\n"] * 400 + [b"stop\n"]) == []
    assert len(text.places([b"    pass\n"] * 400)) == 1000
    assert time.process_time() - began < 2


def test_search_does_not_begin_within_a_line() -> None:
    lines = [b"xa\n", b"a\n"] * (FEW + 1)
    assert Text([*lines, b"xa\n"]).places([b"a\n", b"xa\n"])[0] == 1
    assert Text(lines).places([b"a"]) == []


def test_last_line_without_an_end_is_another_line() -> None:
    text = Text.of(b"a\n" * (FEW + 5) + b"a")
    assert text.places([b"a"]) == [FEW + 5]
    assert len(text.places([b"a\n"])) == FEW + 5


def test_only_line_feeds_end_lines() -> None:
    data = b"a\x0cb\rc\xe2\x80\xa8d\n\x85e\x1c"
    assert split_lines(data) == [b"a\x0cb\rc\xe2\x80\xa8d\n", b"\x85e\x1c"]


def test_folding_levels_white_space_and_no_break_spaces() -> None:
    assert fold(b"\tif  x:\r\n") == fold(b"\xc2\xa0 if x:") == b"if x:"
    assert fold(b"  \t\n") == b""


def test_engine_made_file_is_a_file() -> None:
    made = TextFile(Text([b"a\n", b"b"]), EXECUTABLE)
    plain = File(b"a\nb", EXECUTABLE)
    assert made == plain
    assert plain == made
    assert hash(made) == hash(TextFile(Text([b"a\nb"]), EXECUTABLE))
    assert made.oid == blob_id(b"a\nb")
    assert made != File(b"a\nb")
    assert text_of(made) is made.text
    assert text_of(plain).lines == [b"a\n", b"b"]


@given(st.data())
def test_a_files_bytes_can_be_made_from_those_of_the_version_before(data: st.DataObject) -> None:
    old = data.draw(LINES.filter(lambda lines: len(lines) > 3))
    new: list[bytes] = []
    edits: list[tuple[int, int, int]] = []
    line = 0
    while line < len(old):
        at = data.draw(st.integers(line, len(old)))
        was = data.draw(st.integers(0, len(old) - at))
        came = data.draw(st.lists(st.sampled_from([b"a\n", b"x\n", b"long line\n"]), max_size=4))
        new += old[line:at] + came
        edits.append((at, was, len(came)))
        line = at + was + 1
        new += old[at + was : line]
    new += old[line:]
    before = Text(old)
    file = TextFile(Text(new), EXECUTABLE, before, edits)
    assert file.follows(before)
    assert not file.follows(Text(list(old)))
    oid, made, spans = file.over(b"".join(old))
    assert made == b"".join(new) == file.data
    assert oid == file.oid == blob_id(made)
    kept = bytearray(before.data)
    for offset, gone, came_bytes in reversed(spans):
        kept[offset : offset + gone] = came_bytes
    assert bytes(kept) == made


def test_a_file_that_was_made_of_nothing_follows_nothing() -> None:
    assert not TextFile(Text([b"a\n"])).follows(None)
    assert not TextFile(Text([b"a\n"])).follows(Text([]))
