"""A carried patch keeps every byte but its line numbers and ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchkit.engine.apply import EXACT, Root, apply_patch
from patchkit.engine.model import EXECUTABLE, File, MemoryTree
from patchkit.engine.parse import parse
from patchkit.series.header import Header
from patchkit.series.renumber import keep_headings, renumber
from patchkit.series.writer import write_patch

HEADER = Header("A <a@b.c>", "Wed, 1 Jan 2031 00:00:01 +0000", "Do it", body="Why.")


def body(name: str, number: int = 12) -> bytes:
    return b"".join(f"{name} {n}\n".encode() for n in range(number))


OLD = MemoryTree({"a.py": File(body("a", 40)), "b.py": File(body("b")), "gone": File(b"x\n")})
NEW: dict[str, File | None] = {
    "a.py": File(body("a", 40).replace(b"a 9\n", b"A\nA\n").replace(b"a 30\n", b"")),
    "b.py": File(body("b").replace(b"b 5\n", b"B\n"), EXECUTABLE),
    "c.py": File(b"new\n"),
    "gone": None,
}
PATCH = parse(write_patch(HEADER, OLD, NEW), "x.patch")


def moved(head: bytes, middle: bytes) -> tuple[MemoryTree, dict[str, File | None]]:
    """Upstream's next tree, and what the patch makes of it: lines more at the top and between."""

    def shift(data: bytes) -> bytes:
        return head + data.replace(b"a 20\n", b"a 20\n" + middle)

    base = MemoryTree({p: File(shift(f.data), f.mode) for p, f in OLD.files.items()})
    base.files["gone"] = OLD.files["gone"]
    changes: dict[str, File | None] = {
        p: File(shift(f.data), f.mode) for p, f in NEW.items() if f and p != "c.py"
    }
    return base, {**changes, "c.py": File(b"new\n"), "gone": None}


def test_only_numbers_and_ids_differ_and_the_result_applies_exactly() -> None:
    base, changes = moved(b"1\n2\n3\n", b"more\n")
    data = renumber(PATCH, base, changes)
    assert data is not None
    pairs = zip(PATCH.data.split(b"\n"), data.split(b"\n"), strict=True)
    differing = [(a, b) for a, b in pairs if a != b]
    assert all(a.split()[0] == b.split()[0] in (b"@@", b"index") for a, b in differing)
    assert [b for _, b in differing if b.startswith(b"@@")] == [
        b"@@ -10,7 +10,8 @@",
        b"@@ -32,7 +33,6 @@",
        b"@@ -6,7 +6,7 @@",
    ]
    outcome = apply_patch(base, parse(data, "x"), EXACT, Root())
    assert outcome.state == "applied", outcome.findings
    assert base.with_changes(outcome.changes).files == base.with_changes(changes).files


@given(st.integers(0, 5), st.integers(0, 5))
def test_any_shift_carries_over(head: int, middle: int) -> None:
    base, changes = moved(b"h\n" * head, b"m\n" * middle)
    data = renumber(PATCH, base, changes)
    assert data is not None
    outcome = apply_patch(base, parse(data, "x"), EXACT, Root())
    assert base.with_changes(outcome.changes).files == base.with_changes(changes).files
    assert (data == PATCH.data) == (head == middle == 0)


def test_on_its_own_base_a_patch_keeps_every_byte() -> None:
    assert renumber(PATCH, OLD, NEW) == PATCH.data


def test_changed_context_is_not_carried() -> None:
    base, changes = moved(b"", b"")
    for path in ("a.py", "b.py"):
        near = {"a.py": b"a 8\n", "b.py": b"b 7\n"}[path]
        file, after = base.files[path], changes[path]
        assert after is not None
        other = base.with_changes({path: File(file.data.replace(near, b"!\n"), file.mode)})
        new = {**changes, path: File(after.data.replace(near, b"!\n"), after.mode)}
        assert renumber(PATCH, other, new) is None


def test_another_effect_is_not_carried() -> None:
    base, changes = moved(b"1\n", b"")
    more: dict[str, File | None] = {"d.py": File(b"d\n")}
    mode: dict[str, File | None] = {"b.py": File(changes["b.py"].data)}  # type: ignore[union-attr]
    for other in ({"gone": File(b"x\n")}, {"c.py": File(b"other\n")}, more, mode):
        assert renumber(PATCH, base, {**changes, **other}) is None
    assert renumber(PATCH, base.with_changes({"c.py": File(b"there\n")}), changes) is None


def test_headings_and_odd_counts_stay_as_they_were_written() -> None:
    text = (
        b"Subject: x\n\n---\n--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@ class Somewhere:\n-a 0\n+A\n"
    )
    patch = parse(text, "x")
    base = MemoryTree({"a.py": File(b"top\na 0\n")})
    data = renumber(patch, base, {"a.py": File(b"top\nA\n")})
    assert data == text.replace(b"@@ -1,1 +1,1 @@", b"@@ -2,1 +2,1 @@")


def test_a_group_that_could_slide_is_found_where_it_stands() -> None:
    old = b"a\nb\nx\nx\nx\nx\nc\nd\n"
    new = b"a\nb\nx\nx\nx\nx\nx\nc\nd\n"
    text = b"Subject: x\n---\n--- a/f\n+++ b/f\n@@ -1,5 +1,6 @@\n a\n b\n x\n+x\n x\n x\n"
    patch = parse(text, "x")
    data = renumber(patch, MemoryTree({"f": File(b"0\n" + old)}), {"f": File(b"0\n" + new)})
    assert data == text.replace(b"@@ -1,5 +1,6 @@", b"@@ -2,5 +2,6 @@")


def test_a_hunk_that_changes_the_same_lines_keeps_its_heading() -> None:
    def diff(path: str, heading: str, context: str, added: str) -> bytes:
        return (
            f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
            f"@@ -5,2 +5,3 @@{heading}\n {context}\n+{added}\n last\n"
        ).encode()

    old = parse(diff("x.py", " class One:", "one", "new"), "a.patch")
    same = diff("x.py", " def inner(", "two", "new")
    assert keep_headings(same, old) == diff("x.py", " class One:", "two", "new")
    other = diff("x.py", " def inner(", "two", "newer")
    assert keep_headings(other, old) == other
    elsewhere = diff("y.py", "", "two", "new")
    assert keep_headings(elsewhere, old) == elsewhere
    followed = keep_headings(elsewhere, old, {"x.py": "y.py"})
    assert followed == diff("y.py", " class One:", "two", "new")
    bare = parse(diff("x.py", "", "one", "new"), "a.patch")
    assert keep_headings(same, bare) == diff("x.py", "", "two", "new")
