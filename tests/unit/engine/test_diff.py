"""Differences are git's, byte for byte: `git diff` is the referee."""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine.diff import diff_lines, make_hunks
from patchkit.engine.diff_slide import border, indentation
from patchkit.engine.model import Hunk
from patchkit.engine.text import split_lines

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
PLAIN = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

WORDS = ["a", "b", "  c", "    d", "\treturn", "}", "", "def f():", " x\r", "é"]
LINES = st.lists(st.sampled_from(WORDS), max_size=25)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    old = draw(LINES)
    new = list(old)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(new)))
        gone = draw(st.integers(0, 4))
        new[at : at + gone] = draw(st.lists(st.sampled_from(WORDS), max_size=4))
    ends = draw(st.sampled_from(["\n", ""])), draw(st.sampled_from(["\n", ""]))
    return ("\n".join(old) + ends[0]).encode(), ("\n".join(new) + ends[1]).encode()


def git_hunks(where: Path, old: bytes, new: bytes, context: int = 3) -> bytes:
    (where / "a").write_bytes(old)
    (where / "b").write_bytes(new)
    command = ["git", "diff", "--no-index", "--text", f"-U{context}", "a", "b"]
    out = subprocess.run(command, cwd=where, env=GIT, stdout=subprocess.PIPE).stdout
    _, mark, rest = out.partition(b"\n@@ ")
    return re.sub(rb"(?m)^(@@ [^@]* @@).*$", rb"\1", (mark + rest)[1:])


def count(start: int, number: int) -> bytes:
    return b"%d" % start if number == 1 else b"%d,%d" % (start, number)


def text(hunks: Sequence[Hunk]) -> bytes:
    out = []
    for h in hunks:
        numbers = count(h.old_start, h.old_count), count(h.new_start, h.new_count)
        out.append(b"@@ -%s +%s @@\n" % numbers)
        for tag, line in h.lines:
            out.append(tag + line)
            if not line.endswith(b"\n"):
                out.append(b"\n\\ No newline at end of file\n")
    return b"".join(out)


def rebuilt(old: Sequence[bytes], new: Sequence[bytes]) -> list[bytes]:
    out: list[bytes] = []
    at = 0
    for i, i_end, j, j_end in diff_lines(old, new):
        out += old[at:i]
        out += new[j:j_end]
        at = i_end
    return out + list(old[at:])


@PLAIN
@given(pairs(), st.integers(0, 5))
def test_hunks_are_those_of_git_diff(
    tmp_path: Path, pair: tuple[bytes, bytes], context: int
) -> None:
    old, new = pair
    ours = text(make_hunks(split_lines(old), split_lines(new), context))
    if context == 0:
        # git cuts a common tail off before it looks, and then slides less far.
        assert rebuilt(split_lines(old), split_lines(new)) == split_lines(new)
    else:
        assert ours == git_hunks(tmp_path, old, new, context)


@pytest.mark.parametrize("seed", range(12))
def test_large_differences_are_those_of_git_diff_too(tmp_path: Path, seed: int) -> None:
    """Above 256 edits a search stops early, and lines that stand often are left out."""
    r = random.Random(seed)
    words = [b"l%d\n" % i for i in range(r.choice([3, 300, 3000]))] + [b"\n"] * r.choice([1, 200])
    old = [r.choice(words) for _ in range(1500)]
    new = list(old)
    for _ in range(r.choice([20, 200, 500])):
        at = r.randrange(len(new))
        new[at : at + r.randint(0, 4)] = [r.choice(words) for _ in range(r.randint(0, 4))]
    assert text(make_hunks(old, new)) == git_hunks(tmp_path, b"".join(old), b"".join(new))


@pytest.mark.parametrize("words", [60, 400])
def test_files_without_relation_differ_as_in_git(tmp_path: Path, words: int) -> None:
    """Such a search settles for less than the smallest script."""
    r = random.Random(words)
    old, new = ([b"l%d\n" % r.randrange(words) for _ in range(1200)] for _ in range(2))
    assert text(make_hunks(old, new)) == git_hunks(tmp_path, b"".join(old), b"".join(new))


@given(LINES, LINES)
def test_ranges_rebuild_the_new_side_and_are_apart(old: list[str], new: list[str]) -> None:
    a, b = [w.encode() for w in old], [w.encode() for w in new]
    assert rebuilt(a, b) == b
    ranges = diff_lines(a, b)
    for one, two in pairwise(ranges):
        assert one[1] < two[0]
        assert one[3] < two[2]
    assert all(r[0] < r[1] or r[2] < r[3] for r in ranges)


def test_equal_and_empty_sides() -> None:
    assert diff_lines([], []) == []
    assert diff_lines([b"a\n"], [b"a\n"]) == []
    assert diff_lines([], [b"a\n"]) == [(0, 0, 0, 1)]
    assert diff_lines([b"a\n"], []) == [(0, 1, 0, 0)]


def test_an_empty_side_is_numbered_zero() -> None:
    (made,) = make_hunks([], [b"a\n"])
    assert (made.old_start, made.old_count, made.new_start, made.new_count) == (0, 0, 1, 1)
    (gone,) = make_hunks([b"a\n"], [])
    assert (gone.old_start, gone.old_count, gone.new_start, gone.new_count) == (1, 1, 0, 0)


def test_a_new_function_is_one_whole_function() -> None:
    """Without the rule for readers the group begins with the end of the function above."""
    body = "def {}():\n    x = 1\n    return x\n\n\n"
    old = split_lines((body.format("a") + body.format("c")).encode())
    new = split_lines((body.format("a") + body.format("b") + body.format("c")).encode())
    assert [new[j] for _, _, j, _ in diff_lines(old, new)] == [b"def b():\n"]


def test_changes_up_to_twice_the_context_apart_share_a_hunk() -> None:
    old = [b"%d\n" % i for i in range(20)]
    new = [*old[:3], b"x\n", *old[4:10], b"y\n", *old[11:]]
    assert len(make_hunks(old, new)) == 1
    new = [*old[:3], b"x\n", *old[4:11], b"y\n", *old[12:]]
    assert len(make_hunks(old, new)) == 2


def test_headings_are_asked_for_with_the_first_line_of_the_hunk() -> None:
    old = [b"%d\n" % i for i in range(20)]
    new = [*old[:9], b"x\n", *old[10:]]
    (hunk,) = make_hunks(old, new, heading=lambda lines, at: lines[at].strip())
    assert hunk.heading == b"6"
    assert hunk.old[0] == b"6\n"


def test_indentation_counts_tabs_to_the_next_multiple_of_eight() -> None:
    assert [indentation(x) for x in (b"a", b"  a", b"\ta", b"  \ta", b" \r\n", b"")] == [
        0, 2, 8, 8, -1, -1,
    ]  # fmt: skip
    assert indentation(b" " * 500 + b"a") == 200


def test_a_border_between_blocks_is_better_than_one_inside() -> None:
    lines = [b"if a:\n", b"    b\n", b"\n", b"if c:\n", b"    d\n"]
    assert border(lines, 3) < border(lines, 4)


def test_ten_thousand_lines_take_well_under_a_second() -> None:
    r = random.Random(1)
    old = [b"line %d\n" % (i % 7000) for i in range(10_000)]
    new = list(old)
    for _ in range(100):
        new[r.randrange(10_000)] = b"x\n"
    start = time.process_time()
    assert len(diff_lines(old, new)) > 90
    assert time.process_time() - start < 0.5  # 0.02 s on an idle core


def test_files_without_relation_do_not_take_for_ever() -> None:
    r = random.Random(1)
    old = [b"line %d\n" % (i % 2000) for i in range(1500)]
    new = [r.choice(old) for _ in range(1500)]
    start = time.process_time()
    assert rebuilt(old, new) == new
    assert time.process_time() - start < 10  # 0.1 s on an idle core
