"""Merges are git's, byte for byte, conflicts included: `git merge-file --diff3` is the referee."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from patchkit.engine.merge import Merged, Region, is_binary, merge3

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
WORDS = ["a", "b", "c", "d", "", "  e", "return", "}"]
EDIT = st.tuples(
    st.integers(0, 20), st.integers(0, 3), st.lists(st.sampled_from(WORDS), max_size=3)
)


def edited(lines: list[str], edits: list[tuple[int, int, list[str]]]) -> list[str]:
    out = list(lines)
    for at, gone, come in edits:
        at = min(at, len(out))
        out[at : at + gone] = come
    return out


def git_merge(where: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (where / name).write_bytes(data)
    command = ["git", "merge-file", "-p", "--diff3", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=where, env=GIT, stdout=subprocess.PIPE)
    return done.returncode, done.stdout


END = st.sampled_from(["\n", "\n", "", "\r\n"])


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(WORDS), max_size=16),
    st.lists(EDIT, max_size=2),
    st.lists(EDIT, max_size=3),
    st.lists(EDIT, max_size=3),
    st.tuples(END, END, END),
)
@example(["a"], [], [(0, 1, ["b"])], [(0, 1, ["c"])], ("", "", ""))
@example(["a", "b"], [], [(0, 1, [])], [(1, 1, ["c"])], ("\r\n", "\r\n", "\r\n"))
@example([], [], [(0, 0, ["b"])], [(0, 0, ["c"])], ("\n", "\n", "\r\n"))
def test_a_merge_has_the_bytes_and_the_conflicts_of_git(
    tmp_path: Path,
    lines: list[str],
    both: list[tuple[int, int, list[str]]],
    mine: list[tuple[int, int, list[str]]],
    other: list[tuple[int, int, list[str]]],
    ends: tuple[str, str, str],
) -> None:
    shared = edited(lines, both)
    versions = (lines, edited(shared, mine), edited(shared, other))
    base, ours, theirs = (
        (end.join(v) + end if end else "\n".join(v)).encode()
        for v, end in zip(versions, ends, strict=True)
    )
    number, data = git_merge(tmp_path, base, ours, theirs)
    merged = merge3(base, ours, theirs)
    assert merged.data == data
    assert len(merged.conflicts) == number


@pytest.mark.parametrize("seed", range(8))
def test_large_files_with_many_changes_merge_as_in_git(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    words = [b"l%d\n" % i for i in range(r.choice([30, 800]))] + [b"\n"] * 60
    base = [r.choice(words) for _ in range(1200)]
    sides = []
    for number in (r.choice([5, 150]), r.choice([5, 400])):
        side = list(base)
        for _ in range(number):
            at = r.randrange(len(side))
            side[at : at + r.randint(0, 3)] = [r.choice(words) for _ in range(r.randint(0, 3))]
        sides.append(b"".join(side))
    number, data = git_merge(tmp_path, b"".join(base), sides[0], sides[1])
    merged = merge3(b"".join(base), sides[0], sides[1])
    assert (merged.data, min(len(merged.conflicts), 127)) == (data, number)


BASE = b"a\nb\nc\nd\ne\n"


def test_changes_apart_merge_clean() -> None:
    assert merge3(BASE, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n") == Merged(b"A\nb\nc\nd\nE\n")


def test_the_same_change_on_both_sides_is_made_once() -> None:
    assert merge3(BASE, b"a\nB\nc\nd\ne\n", b"a\nB\nc\nd\nE\n") == Merged(b"a\nB\nc\nd\nE\n")


def test_changes_right_beside_each_other_conflict() -> None:
    merged = merge3(BASE, b"a\nB\nc\nd\ne\n", b"a\nb\nC\nd\ne\n", ("patch", "old", "new"))
    assert not merged.clean
    assert merged.conflicts == (Region((1, 3), (1, 3), (1, 3), 2),)
    assert merged.data == (
        b"a\n<<<<<<< patch\nB\nc\n||||||| old\nb\nc\n=======\nb\nC\n>>>>>>> new\nd\ne\n"
    )


def test_every_conflict_is_reported_with_its_place() -> None:
    ours = BASE.replace(b"a", b"A").replace(b"e", b"E")
    theirs = BASE.replace(b"a", b"1").replace(b"e", b"5")
    merged = merge3(BASE, ours, theirs)
    assert [c.base for c in merged.conflicts] == [(0, 1), (4, 5)]
    lines = merged.data.split(b"\n")
    assert all(lines[c.line - 1].startswith(b"<<<<<<<") for c in merged.conflicts)


def test_a_deleted_twin_is_a_conflict_and_no_silent_landing() -> None:
    """The class that a change is in goes upstream, its look-alike stays: an offset would land."""
    twin = b"class %s:\n    def run(self):\n        start()\n        stop()\n\n\n"
    base = twin % b"A" + twin % b"B"
    ours = base.replace(b"start()\n", b"start()\n        check()\n", 1)
    theirs = twin % b"B"
    assert len(merge3(base, ours, theirs).conflicts) == 1


def test_where_one_side_changed_nothing_the_other_is_the_result() -> None:
    assert merge3(b"\0a", b"\0a", b"\0b").data == b"\0b"
    assert merge3(b"\0a", b"\0b", b"\0a").data == b"\0b"
    assert is_binary(b"\0a")
    assert not is_binary(b"a" * 8000 + b"\0")


def test_ten_thousand_lines_merge_in_well_under_a_second() -> None:
    r = random.Random(1)
    base = [b"    line %d of the file\n" % (i % 7000) for i in range(10_000)]
    ours, theirs = list(base), list(base)
    for _ in range(60):
        ours[r.randrange(10_000)] = b"o\n"
        theirs[r.randrange(10_000)] = b"t\nt\n"
    start = time.process_time()
    merge3(b"".join(base), b"".join(ours), b"".join(theirs))
    assert time.process_time() - start < 0.5  # 0.03 s on an idle core
