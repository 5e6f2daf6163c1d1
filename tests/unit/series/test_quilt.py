"""The series file: what is read, what is refused and why, and edits that keep every comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import Finding, Refused
from patchkit.series.quilt import (
    MAX_ENTRIES,
    Entry,
    dump_series,
    entries_digest,
    parse_series,
    selects,
)
from patchkit.series.quilt_edit import change, insert, move, remove, rename

FULL = b"""# what we carry

   first.patch   \n\tkernels/second.patch\t-p0 # needs a new worker
third#3.patch # last
undo.patch -R
exl3-load.patch -p2 -R #+exl3 # for the small cards
"""


def refused(text: bytes) -> Finding:
    with pytest.raises(Refused) as caught:
        parse_series(text)
    assert len(caught.value.findings) == 1
    return caught.value.findings[0]


def test_reads_names_options_comments_and_guards() -> None:
    series = parse_series(FULL)
    assert series.entries == (
        Entry("first.patch", line=3),
        Entry("kernels/second.patch", strip=0, line=4),
        Entry("third#3.patch", line=5),
        Entry("undo.patch", reverse=True, line=6),
        Entry("exl3-load.patch", strip=2, reverse=True, guard="exl3", line=7),
    )
    assert series.guards() == ["exl3"]


def test_a_series_without_final_newline_keeps_its_last_entry() -> None:
    assert parse_series(b"a.patch\nb.patch").names() == ["a.patch", "b.patch"]


def test_an_empty_series_and_one_of_comments_have_no_entries() -> None:
    assert parse_series(b"").entries == ()
    assert parse_series(b"\n# a\n\n").entries == ()


def test_dump_gives_the_lines_back() -> None:
    assert dump_series(parse_series(FULL)) == FULL


def test_the_canonical_text_of_an_entry_reads_back() -> None:
    entry = Entry("d/a.patch", 3, True, "tp3", 1)
    assert parse_series(entry.text().encode()).entries == (entry,)


@pytest.mark.parametrize(
    ("line", "name", "word"),
    [
        ("a.patch --fuzz=5", "bad-series-option", "--fuzz=5"),
        ("a.patch -p 0", "bad-series-option", "two words"),
        ("a.patch -Rp1", "bad-series-option", "-Rp1"),
        ("a.patch -pab", "bad-series-option", "-pab"),
        ("a.patch -p1 -p1", "bad-series-option", "-p1"),
        ("a.patch -p65", "bad-series-option", "-p65"),
        ("a.patch -R -R", "bad-series-option", "-R"),
        ("a b.patch", "bad-series-option", "b.patch"),
        ("-disabled.patch", "bad-series-option", "-disabled.patch"),
        ("a.patch.gz", "bad-series-option", "compressed"),
        ("  # indented", "bad-series-option", "indented"),
        ("a.patch #-exl3", "bad-series-option", "negative"),
        ("a.patch #+a #+b", "bad-series-option", "#+b"),
        ("a.patch #+a #-b", "bad-series-option", "#-b"),
        ("a.patch # see #+b", "bad-series-option", "#+b"),
        ("a.patch # +exl3", "bad-series-option", "reads like a guard"),
        ("a.patch #+exl3 old cards", "bad-series-option", "old cards"),
        ("a.patch #+", "bad-series-option", "no guard"),
        ("../../secrets.patch", "path-escape", "../../secrets.patch"),
        ("/etc/passwd", "path-escape", "/etc/passwd"),
        ("a//b.patch", "path-escape", "a//b.patch"),
        (".git/hooks/x.patch", "path-escape", ".git"),
    ],
)
def test_what_readers_would_read_differently_is_refused_by_name(
    line: str, name: str, word: str
) -> None:
    finding = refused(f"# one\n{line}\n".encode())
    assert finding.name == name
    assert word in finding.message
    assert "line 2" in finding.message
    assert finding.where.line == 2


@pytest.mark.parametrize("char", ["\ufeff", "\u200b", "\u00a0", "\x1b", "\u202e", "\x00", "\x0c"])
def test_invisible_characters_are_refused(char: str) -> None:
    assert f"U+{ord(char):04X}" in refused(f"{char}a.patch\n".encode()).message


def test_crlf_is_one_finding_for_the_whole_file() -> None:
    finding = refused(b"a.patch\nb.patch -p0\r\nc.patch\r\n")
    assert finding.name == "line-endings"
    assert "CRLF" in finding.message
    assert finding.where.line == 2


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    assert refused(b"a.patch\n\xff.patch\n").where.line == 2


def test_a_file_without_bounds_is_refused() -> None:
    assert refused(b"#" * ((1 << 20) + 1)).name == "too-large"


def test_a_patch_listed_twice_names_both_lines() -> None:
    finding = refused(b"a.patch\nb.patch\na.patch -R\n")
    assert finding.name == "duplicate-entry"
    assert "line 1" in finding.message
    assert "line 3" in finding.message


def test_all_faults_of_a_file_come_in_one_run() -> None:
    with pytest.raises(Refused) as caught:
        parse_series(b"a.patch --x\n../b.patch\na.patch\n")
    assert [f.name for f in caught.value.findings] == ["bad-series-option", "path-escape"]


@given(st.binary(max_size=200))
def test_no_input_does_anything_but_parse_or_refuse(data: bytes) -> None:
    try:
        series = parse_series(data)
    except Refused:
        return
    assert parse_series(dump_series(series)) == series


def test_faults_without_end_are_cut_off() -> None:
    with pytest.raises(Refused) as caught:
        parse_series(b"-x\n" * 100_000)
    assert len(caught.value.findings) == 100


def test_the_digest_sees_order_options_and_guards_but_no_comment() -> None:
    def digest(text: bytes) -> str:
        return entries_digest(parse_series(text).entries)

    base = digest(b"a.patch\nb.patch\n")
    assert digest(b"# hello\na.patch -p1 # x\n\nb.patch") == base
    others = [b"b.patch\na.patch\n", b"a.patch -p0\nb.patch\n", b"a.patch #+x\nb.patch\n"]
    assert len({base, *map(digest, others)}) == 4


def test_a_guard_selects_its_patches_and_no_guard_is_always_in() -> None:
    assert selects([], Entry("a.patch"))
    assert selects(["x"], Entry("a.patch", guard="x"))
    assert not selects(["y"], Entry("a.patch", guard="x"))


def test_insert_keeps_comments_and_goes_where_it_is_told() -> None:
    series = parse_series(b"# head\na.patch # one\nb.patch")
    new = Entry("n.patch", guard="g")
    assert dump_series(insert(series, new)) == b"# head\na.patch # one\nb.patch\nn.patch #+g\n"
    after = insert(series, new, after="a.patch")
    assert dump_series(after) == b"# head\na.patch # one\nn.patch #+g\nb.patch\n"
    assert insert(series, new, first=True).names() == ["n.patch", "a.patch", "b.patch"]
    assert insert(parse_series(b""), new, first=True).names() == ["n.patch"]


def test_remove_move_and_rename_change_one_line() -> None:
    series = parse_series(b"a.patch # one\n# mid\nb.patch -R #+g # two\nc.patch\n")
    assert dump_series(remove(series, "b.patch")) == b"a.patch # one\n# mid\nc.patch\n"
    moved = move(series, "a.patch", after="b.patch")
    assert dump_series(moved) == b"# mid\nb.patch -R #+g # two\na.patch # one\nc.patch\n"
    assert move(series, "c.patch", first=True).names() == ["c.patch", "a.patch", "b.patch"]
    assert move(series, "a.patch").names() == ["b.patch", "c.patch", "a.patch"]
    renamed = rename(series, "b.patch", "z.patch")
    assert dump_series(renamed) == b"a.patch # one\n# mid\nz.patch -R #+g # two\nc.patch\n"


def test_change_sets_guard_and_options_and_keeps_the_comment() -> None:
    series = parse_series(b"a.patch # one\nb.patch -R #+g # two\n")
    assert dump_series(change(series, "a.patch", guard="g")).startswith(b"a.patch #+g # one\n")
    back = change(series, "b.patch", guard=None, reverse=False, strip=0)
    assert dump_series(back).endswith(b"b.patch -p0 # two\n")


@pytest.mark.parametrize("edit", [
    lambda s: insert(s, Entry("a.patch")),
    lambda s: insert(s, Entry("n.patch"), after="no.patch"),
    lambda s: insert(s, Entry("../n.patch")),
    lambda s: remove(s, "no.patch"),
    lambda s: move(s, "a.patch", after="a.patch"),
    lambda s: rename(s, "a.patch", "b.patch"),
    lambda s: rename(s, "a.patch", "a b"),
])  # fmt: skip
def test_an_edit_that_would_break_the_file_is_refused(edit) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Refused):
        edit(parse_series(b"a.patch\nb.patch\n"))


def test_more_patches_than_the_limit_are_refused_by_name() -> None:
    rows = [f"p{n}.patch\n" for n in range(MAX_ENTRIES + 1)]
    assert len(parse_series("".join(rows[:-1]).encode()).entries) == MAX_ENTRIES
    found = refused(b"# a comment\n" + "".join(rows).encode())
    assert (found.name, found.where.line) == ("too-large", MAX_ENTRIES + 2)
