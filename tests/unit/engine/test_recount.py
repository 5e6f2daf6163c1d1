"""Corrected counts: the header says what the body holds, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine.hunk_text import NO_NEWLINE, body_lines, header_line, renumbered
from patchkit.engine.model import Hunk
from patchkit.engine.parse import parse, scan
from patchkit.engine.recount import recount
from patchkit.engine.text import split_lines
from patchkit.errors import Refused
from tests.cases.loader import load_cases

CASES = {c.name: c for c in load_cases()}
COUNTS = [c.name for c in load_cases() if c.reason == "corrupt-hunk-count"]
COUNTS.remove("truncated")


def patch_of(name: str) -> bytes:
    [(_, data)] = CASES[name].patch_files()
    return data


@pytest.mark.parametrize("name", COUNTS)
def test_a_corrected_file_reads_strictly_as_it_reads_with_recount(name: str) -> None:
    data = patch_of(name)
    fixed = recount(data, name)
    strict, lax = parse(fixed, name), parse(data, name, recount=True)
    assert not strict.notes
    assert lax.notes
    assert [[h.lines for h in s.hunks] for s in strict.sections] == [
        [h.lines for h in s.hunks] for s in lax.sections
    ]
    assert [[header_line(h) for h in s.hunks] for s in strict.sections] == [
        [header_line(h) for h in s.hunks] for s in lax.sections
    ]


def test_an_added_line_that_the_end_of_the_file_cuts_off_is_not_made_content() -> None:
    for data in (
        patch_of("truncated"),
        patch_of("truncated").replace(b"-22,4 +22,4", b"-2,9 +2,9"),
    ):
        with pytest.raises(Refused) as caught:
            recount(data, "p")
        assert "no line end" in str(caught.value.findings[0])


def test_only_header_lines_change_where_a_count_is_wrong() -> None:
    data = patch_of("count-too-large")
    assert recount(data, "p") == data.replace(b"-15,7 +15,8", b"-15,6 +15,7")


def test_lines_that_were_left_over_become_part_of_their_hunk() -> None:
    data = patch_of("count-too-small-loses-an-addition")
    assert recount(data, "p") == data.replace(b"-54,3 +54,5", b"-54,3 +54,6")


def test_a_signature_stays_outside() -> None:
    data = patch_of("mail-signature-eaten")
    fixed = recount(data, "p")
    assert fixed == data.replace(b"-15,7 +15,7", b"-15,6 +15,7")
    assert fixed.endswith(b"-- \n2.43.0\n")


def test_later_hunks_follow_a_corrected_one() -> None:
    data = b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n+b\n+c\n d\n@@ -9,2 +9,2 @@ f\n a\n-b\n+c\n"
    assert b"@@ -1,2 +1,4 @@\n" in recount(data, "p")
    assert b"@@ -9,2 +11,2 @@ f\n" in recount(data, "p")


def test_stray_blank_lines_between_hunks_go() -> None:
    data = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n@@ -9,2 +9,2 @@\n a\n-b\n+c\n"
    assert recount(data, "p") == data.replace(b"\n\n@@", b"\n@@")


@pytest.mark.parametrize("name", ["plain", "no-newline-both", "crlf-file-patch-all-crlf"])
def test_a_good_file_keeps_its_bytes(name: str) -> None:
    assert recount(patch_of(name), name) == patch_of(name)


def test_crlf_headers_keep_their_line_ends() -> None:
    data = patch_of("crlf-file-patch-all-crlf").replace(b"-15,6 +15,7", b"-15,7 +15,7")
    assert recount(data + b"end\r\n", "p") == patch_of("crlf-file-patch-all-crlf") + b"end\r\n"


def test_what_is_not_a_count_is_still_refused() -> None:
    with pytest.raises(Refused) as caught:
        recount(patch_of("bare-hunk-header"), "p")
    assert caught.value.findings[0].name == "bare-hunk-header"


GOOD = [
    data
    for case in load_cases()
    if case.verdict == "applied" and not case.generated and not case.reason
    for _, data in case.patch_files()
    if b"\n@@ " in data and scan(data, "p").last == len(split_lines(data))
]
"""Good patches with nothing behind their last hunk."""


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(GOOD), st.integers(-2, 9), st.integers(-2, 9), st.data())
def test_any_wrong_count_above_another_hunk_is_found_again(
    data: bytes, old: int, new: int, draw: st.DataObject
) -> None:
    """Spoil the counts of one hunk: recounting restores the very bytes of its body."""
    patch = parse(data, "p")
    hunks = [h for s in patch.sections for h in s.hunks if s.kind == "modify"]
    if not hunks:
        return
    hunk = draw.draw(st.sampled_from(hunks))
    lines = data.split(b"\n")
    spoiled = (max(hunk.old_count + old, 1), max(hunk.new_count + new, 1))
    lines[hunk.patch_line - 1] = b"@@ -%d,%d +%d,%d @@" % (
        hunk.old_start,
        spoiled[0],
        hunk.new_start,
        spoiled[1],
    )
    bad = b"\n".join(lines)
    if not scan(bad, "p").findings:  # as git reads it: context left over below a short count
        return
    fixed = parse(recount(bad, "p"), "p")
    assert [[h.lines for h in s.hunks] for s in fixed.sections] == [
        [h.lines for h in s.hunks] for s in patch.sections
    ]


def test_numbers_of_the_new_side_follow_from_the_old_side() -> None:
    hunks = (
        Hunk(3, 1, 99, 3, b" ++", (b"a\n", b"b\n", b"b\n")),
        Hunk(9, 2, 99, 1, b" -", (b"a\n", b"c\n")),
        Hunk(20, 0, 99, 1, b"+", (b"b\n",)),
        Hunk(30, 1, 99, 0, b"-", (b"c\n",)),
    )
    assert [h.new_start for h in renumbered(hunks)] == [3, 11, 22, 31]


def test_a_hunk_is_written_as_git_writes_it() -> None:
    hunk = Hunk(1, 1, 1, 2, b" +", (b"a\n", b"b"), b"def f():")
    assert header_line(hunk) == b"@@ -1 +1,2 @@ def f():\n"
    assert body_lines(hunk) == [b" a\n", b"+b\n", NO_NEWLINE]
