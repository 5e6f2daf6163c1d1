"""A patch's effect on another base: merged file by file, or a clash that says why."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from patchkit.derive.carry import carry, finding_of, hunks_of, renames_of, untouched
from patchkit.engine.model import EXECUTABLE, SYMLINK, File, MemoryTree
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root
from patchkit.series.writer import write_diff

OLD = b"".join(b"line %d\n" % n for n in range(20))
MINE = OLD.replace(b"line 3\n", b"line three\n")
BOTH = b"top\n" + MINE


def tree(**files: File) -> MemoryTree:
    return MemoryTree(files)


def one(base: File | None, now: File | None, theirs: File | None) -> File | str | None:
    """What becomes of the file f; the reason where it clashes."""
    before = MemoryTree({} if base is None else {"f": base})
    there = MemoryTree({} if now is None else {"f": now})
    done = carry(before, {"f": theirs}, there)
    return done.clashes[0].reason if done.clashes else done.changes["f"]


def test_a_change_elsewhere_in_the_file_is_merged() -> None:
    assert one(File(OLD), File(b"top\n" + OLD), File(MINE)) == File(BOTH)


def test_what_did_not_change_below_is_taken_as_it_is() -> None:
    before = tree(f=File(OLD), g=File(b"g\n"))
    changes: Mapping[str, File | None] = {"f": File(MINE), "g": None, "new": File(b"n\n")}
    assert untouched(before, changes, before)
    assert carry(before, changes, before).changes == changes
    assert not untouched(before, changes, tree(f=File(BOTH)))


def test_the_same_change_on_both_sides_is_no_clash() -> None:
    assert one(File(OLD), File(MINE), File(MINE)) == File(MINE)
    assert one(File(OLD), None, None) is None
    assert one(None, File(MINE), File(MINE)) == File(MINE)


@pytest.mark.parametrize(
    ("base", "now", "theirs", "words"),
    [
        (File(OLD), File(OLD.replace(b"line 3\n", b"x\n")), File(MINE), "line 4"),
        (None, File(b"a\n"), File(b"b\n"), "another file stands there"),
        (File(OLD), None, File(MINE), "is gone"),
        (File(OLD), File(b"top\n" + OLD), None, "deleted by the patch"),
        (File(b"a", SYMLINK), File(b"b", SYMLINK), File(b"c", SYMLINK), "symbolic link"),
        (File(OLD), File(b"a", SYMLINK), File(MINE), "symbolic link"),
        (File(b"\0" + OLD), File(b"\0x" + OLD), File(b"\0" + MINE), "binary"),
    ],
)
def test_what_cannot_be_merged_says_why(
    base: File | None, now: File | None, theirs: File | None, words: str
) -> None:
    found = one(base, now, theirs)
    assert isinstance(found, str)
    assert words in found


def test_modes_merge_like_lines() -> None:
    assert one(File(OLD), File(OLD, EXECUTABLE), File(MINE)) == File(MINE, EXECUTABLE)
    assert one(File(OLD), File(b"top\n" + OLD), File(MINE, EXECUTABLE)) == File(BOTH, EXECUTABLE)


def test_a_rename_follows_the_file() -> None:
    before, now = tree(a=File(OLD)), tree(a=File(b"top\n" + OLD))
    changes: Mapping[str, File | None] = {"a": None, "b": File(MINE)}
    diff = write_diff(before, changes, renames={"b": "a"})
    patch = parse(diff, "p")
    renames = renames_of(patch, Root())
    assert renames == {"b": "a"}
    assert renames_of(patch, Root(), reverse=True) == {"a": "b"}
    assert carry(before, changes, now, renames).changes == {"a": None, "b": File(BOTH)}
    gone = carry(before, changes, tree(), renames)
    assert "gone" in gone.clashes[0].reason
    taken = carry(before, changes, tree(a=File(OLD), b=File(b"x\n")), renames)
    assert taken.clashes[0].path == "b"


def test_a_clash_names_the_hunk_and_shows_both_sides() -> None:
    theirs = OLD.replace(b"line 3\n", b"x\n").replace(b"line 15\n", b"y\n")
    patch = parse(write_diff(tree(f=File(OLD)), {"f": File(theirs)}), "p.patch")
    now = tree(f=File(OLD.replace(b"line 15\n", b"z\n")))
    (clash,) = carry(tree(f=File(OLD)), {"f": File(theirs)}, now).clashes
    finding = finding_of(clash, patch, Root(), "do this")
    assert (finding.name, finding.where.patch, finding.where.file) == ("conflict", "p.patch", "f")
    assert finding.where.hunk == 2
    assert finding.details == ("there now:", "  z", "the patch makes:", "  y")
    assert finding.next == "do this"


def test_every_hunk_that_clashes_is_named_and_none_beside_it() -> None:
    old = b"".join(b"line %d\n" % number for number in range(40))
    theirs, ours = old, old
    for number in (5, 20, 35):
        theirs = theirs.replace(b"line %d\n" % number, b"x\n")
    for number in (5, 35):
        ours = ours.replace(b"line %d\n" % number, b"a\n")
    patch = parse(write_diff(tree(f=File(old)), {"f": File(theirs)}), "p.patch")
    (clash,) = carry(tree(f=File(old)), {"f": File(theirs)}, tree(f=File(ours))).clashes
    assert hunks_of(clash, patch, Root()) == [1, 3]
    finding = finding_of(clash, patch, Root(), "do this")
    assert (finding.where.hunk, finding.details[-1]) == (1, "so does hunk 3")
    (gone,) = carry(tree(f=File(old)), {"f": File(theirs)}, tree()).clashes
    assert hunks_of(gone, patch, Root()) == [1, 2, 3]
    assert finding_of(gone, patch, Root(), "do this").where.hunk is None


def test_a_file_that_is_gone_does_not_come_back_under_another_name() -> None:
    file = File(b"a\n")
    before = MemoryTree({"one.py": file})
    changes = {"one.py": None, "two.py": file}
    carried = carry(before, changes, MemoryTree({}))
    assert [(clash.path, clash.reason) for clash in carried.clashes] == [
        ("two.py", "is one.py under another name, and that is gone")
    ]
    assert not carry(before, changes, before).clashes
    assert not carry(before, changes, MemoryTree({"two.py": file})).clashes


def test_nor_does_it_with_other_lines_as_long_as_git_would_know_it_again() -> None:
    before = MemoryTree({"one.py": File(b"a\nb\nc\nd\n")})
    moved = {"one.py": None, "two.py": File(b"a\nb\nx\ny\n")}
    assert [clash.path for clash in carry(before, moved, MemoryTree({})).clashes] == ["two.py"]
    other = {"one.py": None, "two.py": File(b"a\nx\ny\nz\n")}
    assert not carry(before, other, MemoryTree({})).clashes


def test_a_file_that_only_the_patch_removes_is_found_first() -> None:
    kept = File(b"a\nb\nc\n")
    before = MemoryTree({"one.py": File(b"a\nb\nd\n"), "old.py": kept})
    changes = {"one.py": None, "old.py": None, "new.py": kept}
    assert not carry(before, changes, MemoryTree({"old.py": kept})).clashes
