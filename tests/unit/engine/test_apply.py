"""One patch on one tree: all of it or nothing, and what is there already."""

from __future__ import annotations

import random
import time

import pytest

from patchkit.engine.apply import Outcome, apply_patch
from patchkit.engine.model import EXECUTABLE, SYMLINK, File, MemoryTree
from patchkit.engine.rule import Allow, Rule
from patchkit.engine.strip import Root
from tests.unit.engine.making import (
    as_file,
    diff,
    names,
    numbered,
    patch,
    put_in,
    texts,
    tree,
    words,
)

BASE = numbered(1, 40)
NEW = ["new 1\n" if n in (9, 29) else x for n, x in enumerate(BASE)]
HALF = ["new 1\n" if n == 9 else x for n, x in enumerate(BASE)]
TWO = diff("f", BASE, NEW)
FILE, DONE = "".join(BASE), "".join(NEW)
PIN = Rule(pin_base=True)
GIT = "diff --git a/{0} b/{0}\n"


def put(base: MemoryTree, text: str, rule: Rule | None = None, reverse: bool = False) -> Outcome:
    return apply_patch(base, patch(text), rule or Rule(), Root(), reverse)


def applied(base: MemoryTree, text: str, reverse: bool = False) -> MemoryTree:
    outcome = put(base, text, reverse=reverse)
    assert outcome.state == "applied", words(outcome.findings)
    return base.with_changes(outcome.changes)


def create(path: str, *lines: str, mode: str = "100644") -> str:
    head = f"{GIT.format(path)}new file mode {mode}\n"
    if not lines:
        return head + "index 0000000..e69de29\n"
    body = "".join(f"+{line}\n" for line in lines)
    return f"{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


def delete(path: str, *lines: str) -> str:
    head = f"{GIT.format(path)}deleted file mode 100644\n"
    if not lines:
        return head + "index e69de29..0000000\n"
    body = "".join(f"-{line}\n" for line in lines)
    return f"{head}--- a/{path}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}"


def rename(old: str, new: str, hunk: str = "", word: str = "rename") -> str:
    head = f"diff --git a/{old} b/{new}\nsimilarity index 90%\n"
    head += f"{word} from {old}\n{word} to {new}\n"
    return head + (f"--- a/{old}\n+++ b/{new}\n{hunk}" if hunk else "")


def mode(path: str, old: str, new: str) -> str:
    return f"{GIT.format(path)}old mode {old}\nnew mode {new}\n"


def hunks(old: list[str], new: list[str]) -> str:
    return diff("x", old, new).split("\n", 3)[3]


LINK = GIT.format("f") + "new file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+t\n"
LINK += "\\ No newline at end of file\n"


# ---------------------------------------------------------------- all or nothing


def test_places_and_changes_of_a_patch_that_holds() -> None:
    outcome = put(tree({"f": FILE, "g": "x"}), TWO)
    assert outcome.state == "applied"
    assert list(outcome.changes) == ["f"]
    assert [(p.hunk, p.line, p.offset) for p in outcome.places] == [(1, 7, 0), (2, 27, 0)]
    assert outcome.notes == ()
    assert [e.starts for e in outcome.edits] == [[6, 26]]


def test_offset_is_noted_once_a_file() -> None:
    outcome = put(tree({"f": "top\n" + FILE}), TWO)
    [note] = outcome.notes
    assert (note.name, note.note) == ("offset", True)
    assert "hunk 1 at line 8 (offset 1)" in note.message
    assert "hunk 2 at line 28 (offset 1)" in note.message


def test_one_failing_file_leaves_all_unchanged_and_every_failure_is_told() -> None:
    base = tree({"f": FILE, "h": "x\n"})
    text = TWO + diff("g", BASE, NEW) + diff("h", ["a\n"], ["b\n"])
    outcome = put(base, text)
    assert outcome.state == "refused"
    assert outcome.changes == {}
    assert [(f.name, f.where.file) for f in outcome.findings] == [
        ("missing-target", "g"),
        ("conflict", "h"),
    ]


def test_patch_that_changes_nothing_is_refused() -> None:
    text = GIT.format("f") + "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-line 1\n+line 1\n line 2\n"
    assert names(put(tree({"f": FILE}), text).findings) == ["no-op"]


def test_second_section_of_a_file_stands_on_the_first() -> None:
    text = diff("f", BASE, HALF) + diff("f", HALF, NEW)
    assert texts(applied(tree({"f": FILE}), text)) == {"f": DONE}
    assert texts(applied(tree({"f": DONE}), text, reverse=True)) == {"f": FILE}


def test_tree_is_not_changed() -> None:
    base = tree({"f": FILE})
    put(base, TWO + create("g", "a"))
    assert texts(base) == {"f": FILE}


# ---------------------------------------------------------------- new and deleted files


def test_new_file_over_another_is_refused() -> None:
    [finding] = put(tree({"f": "other\n"}), create("f", "a")).findings
    assert finding.name == "target-exists"
    assert "exists" in finding.message


def test_new_file_that_is_there_is_already_applied_with_its_mode() -> None:
    assert put(tree({"f": "a\n"}), create("f", "a")).state == "already-applied"
    outcome = put(tree({"f": "a\n"}), create("f", "a", mode="100755"))
    assert names(outcome.findings) == ["target-exists"]
    assert "mode 100644" in words(outcome.findings)
    executable = tree({"f": as_file("a\n", EXECUTABLE)})
    assert put(executable, create("f", "a", mode="100755")).state == "already-applied"


def test_new_file_where_a_folder_stands_or_below_a_file_is_refused() -> None:
    base = tree({"d/x": "x\n", "f": FILE})
    assert names(put(base, create("d", "a")).findings) == ["target-exists"]
    assert names(put(base, create("f/x", "a")).findings) == ["target-exists"]


def test_folder_may_become_a_file_where_all_of_it_goes() -> None:
    base = tree({"d/x": "x\n"})
    assert texts(applied(base, delete("d/x", "x") + create("d", "a"))) == {"d": "a\n"}
    back = applied(tree({"d": "a\n"}), create("d/x", "x") + delete("d", "a"))
    assert texts(back) == {"d/x": "x\n"}


def test_plain_diff_with_an_empty_old_side_makes_a_missing_file() -> None:
    text = "--- a/g\n+++ b/g\n@@ -0,0 +1 @@\n+a\n"
    assert texts(applied(tree({}), text)) == {"g": "a\n"}
    assert texts(applied(tree({"g": ""}), text)) == {"g": "a\n"}


def test_deleted_file_must_be_what_the_patch_knows() -> None:
    assert texts(applied(tree({"f": "a\n"}), delete("f", "a"))) == {}
    [finding] = put(tree({"f": "a\nb = 1\n"}), delete("f", "a")).findings
    assert finding.name == "conflict"
    assert "b = 1" in words([finding])
    [more] = put(tree({"f": "a\n"}), delete("f")).findings
    assert "left over" in words([more])


def test_deleted_file_that_is_gone_is_a_wrong_path_until_the_rest_is_there() -> None:
    outcome = put(tree({}), delete("g", "a"))
    assert names(outcome.findings) == ["missing-target"]
    assert put(tree({"f": DONE}), TWO + delete("g", "a")).state == "already-applied"
    assert put(tree({"f": FILE}), TWO + delete("g", "a")).state == "refused"


# ---------------------------------------------------------------- renames and copies


def test_rename_and_copy() -> None:
    base = tree({"f": FILE, "g": "g\n"})
    assert texts(applied(base, rename("f", "h"))) == {"g": "g\n", "h": FILE}
    edited = rename("f", "h", hunks(BASE, NEW))
    assert texts(applied(base, edited)) == {"g": "g\n", "h": DONE}
    copied = rename("f", "h", hunks(BASE, NEW), "copy")
    assert texts(applied(base, copied)) == {"f": FILE, "g": "g\n", "h": DONE}


def test_two_renames_may_swap() -> None:
    base = tree({"a": "1\n", "b": "2\n"})
    swap = rename("a", "b") + rename("b", "a")
    assert texts(applied(base, swap)) == {"a": "2\n", "b": "1\n"}
    assert texts(applied(base, swap, reverse=True)) == {"a": "2\n", "b": "1\n"}


def test_rename_onto_a_file_is_refused() -> None:
    outcome = put(tree({"a": "1\n", "b": "2\n"}), rename("a", "b"))
    assert names(outcome.findings) == ["target-exists"]
    assert "rename" in words(outcome.findings)


def test_a_copy_onto_its_own_source_is_refused_and_a_rename_onto_itself_is_none() -> None:
    """As git has both; taken back, such a copy would delete the file it was made from."""
    base = tree({"f": FILE})
    for reverse in (False, True):
        outcome = put(base, rename("f", "f", word="copy"), reverse=reverse)
        assert (outcome.state, names(outcome.findings)) == ("refused", ["target-exists"])
    assert texts(base.with_changes(put(base, rename("f", "f")).changes)) == {"f": FILE}


def test_copy_reads_what_was_before_the_patch() -> None:
    base = tree({"f": FILE})
    text = TWO + rename("f", "g", word="copy")
    done = applied(base, text)
    assert texts(done) == {"f": DONE, "g": FILE}
    assert texts(applied(done, text, reverse=True)) == {"f": FILE}


def test_copy_that_was_edited_since_is_not_taken_back() -> None:
    text = rename("f", "g", word="copy")
    outcome = put(tree({"f": FILE, "g": "mine\n"}), text, reverse=True)
    assert names(outcome.findings) == ["conflict"]


def test_rename_in_a_later_mail_moves_what_the_first_made() -> None:
    mail = "From " + "1" * 40 + " Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n"
    text = mail + TWO + "-- \n2.43\n\n" + mail + rename("f", "g")
    assert texts(applied(tree({"f": FILE}), text)) == {"g": DONE}
    assert texts(applied(tree({"g": DONE}), text, reverse=True)) == {"f": FILE}


@pytest.mark.parametrize("word", ["rename", "copy"])
def test_rename_or_copy_that_was_done_is_there(word: str) -> None:
    text = rename("f", "g", hunks(BASE, NEW), word)
    done = applied(tree({"f": FILE}), text)
    assert put(done, text).state == "already-applied"
    assert put(applied(tree({"f": FILE}), rename("f", "g", word=word)), text).state == "refused"


# ---------------------------------------------------------------- modes and links


def test_mode_alone() -> None:
    text = mode("f", "100644", "100755")
    assert applied(tree({"f": FILE}), text).files["f"].mode == EXECUTABLE
    assert put(tree({"f": as_file(FILE, EXECUTABLE)}), text).state == "already-applied"
    assert put(tree({"f": as_file(FILE, EXECUTABLE)}), text, PIN).state == "refused"


def test_mode_that_is_there_does_not_hide_the_content_that_is_not() -> None:
    text = TWO.replace("--- a/f", "old mode 100644\nnew mode 100755\n--- a/f")
    after = applied(tree({"f": as_file(FILE, EXECUTABLE)}), text)
    assert after.files["f"] == as_file(DONE, EXECUTABLE)
    half = put(tree({"f": DONE}), text)
    assert half.state == "refused"
    assert names(half.findings) == ["partly-applied"]
    assert "mode 100755 is not there yet" in words(half.findings)


def test_a_mode_whose_old_half_is_not_stated_stays_when_taken_back_as_with_git() -> None:
    patch = "diff --git a/f b/g\nrename from f\nrename to g\nnew mode 100755\n"
    after = applied(MemoryTree({"f": File(b"a\n")}), patch)
    assert after.files == {"g": File(b"a\n", EXECUTABLE)}
    assert applied(after, patch, reverse=True).files == {"f": File(b"a\n", EXECUTABLE)}


def test_link_is_not_edited_as_a_file() -> None:
    base = tree({"f": File(b"t", SYMLINK), "t": FILE})
    assert names(put(base, TWO).findings) == ["symlink-in-path"]
    assert names(put(base, mode("f", "100644", "100755")).findings) == ["symlink-in-path"]
    assert names(put(tree({"f": "t"}), LINK, reverse=True).findings) == ["conflict"]


def test_link_itself_may_change() -> None:
    text = GIT.format("f") + "index 1..2 120000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-t\n"
    text += "\\ No newline at end of file\n+u\n\\ No newline at end of file\n"
    after = applied(tree({"f": File(b"t", SYMLINK)}), text)
    assert after.files["f"] == File(b"u", SYMLINK)


def test_file_may_become_a_link_and_back() -> None:
    text = delete("f", "a") + LINK
    after = applied(tree({"f": "a\n"}), text)
    assert after.files["f"] == File(b"t", SYMLINK)
    assert texts(applied(after, text, reverse=True)) == {"f": "a\n"}
    assert put(after, text).state == "already-applied"


@pytest.mark.parametrize("order", [1, -1])
def test_nothing_is_written_behind_a_link_that_the_patch_makes(order: int) -> None:
    parts = [LINK, create("f/x", "a")][::order]
    outcome = put(tree({}), "".join(parts))
    assert names(outcome.findings) == ["symlink-in-path"]


def test_missing_file_behind_a_link_says_so() -> None:
    base = tree({"d": File(b"..", SYMLINK)})
    assert names(put(base, diff("d/f", BASE, NEW)).findings) == ["symlink-in-path"]


# ---------------------------------------------------------------- there already


def test_whole_patch_there() -> None:
    outcome = put(tree({"f": DONE}), TWO)
    assert (outcome.state, outcome.ok, outcome.changes) == ("already-applied", True, {})
    assert [(t.file, t.hunk, t.line, t.lines) for t in outcome.there] == [
        ("f", 1, 7, 7),
        ("f", 2, 27, 7),
    ]


def test_whole_patch_there_at_an_offset() -> None:
    outcome = put(tree({"f": "top\n" + DONE}), TWO)
    assert outcome.state == "already-applied"
    assert "offset 1" in words(outcome.notes)


def test_patch_found_in_a_release_is_upstreamed() -> None:
    outcome = put(tree({"f": DONE}), TWO, PIN)
    assert names(outcome.findings) == ["upstreamed"]
    assert outcome.findings[0].next == "patchkit drop x.patch"
    half = put(tree({"f": "".join(HALF)}), TWO, PIN)
    assert names(half.findings) == ["upstreamed"]
    assert half.findings[0].next == "patchkit refresh x.patch"
    assert "hunk 1 is there already; hunk 2 is not" in words(half.findings)


def test_half_a_patch_is_partly_applied_and_the_hunks_are_named() -> None:
    [finding] = put(tree({"f": "".join(HALF)}), TWO).findings
    assert finding.name == "partly-applied"
    assert "f: hunk 1 is there already; hunk 2 is not there yet" in finding.message


def test_half_a_patch_beside_a_conflict_tells_both() -> None:
    lines = [*HALF[:28], "other\n", "other\n", *HALF[30:]]
    assert names(put(tree({"f": "".join(lines)}), TWO).findings) == ["partly-applied", "conflict"]


def test_exact_place_is_taken_though_the_result_would_be_found_too() -> None:
    """An insertion whose context holds again: only a record can tell."""
    plain = "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n a\n+a\n end\n"
    assert put(tree({"f": "x\na\nend\n"}), plain).state == "applied"


def test_result_at_the_stated_place_is_not_put_in_once_more_elsewhere() -> None:
    """The pre-image stands once, far away, and what the hunk makes stands where it belongs."""
    lines = [*NEW, *BASE[6:13], "end\n"]
    one = diff("f", BASE, HALF)
    assert put(tree({"f": "".join(lines)}), one).state == "already-applied"


def test_reverse_of_what_is_not_there_is_a_conflict() -> None:
    outcome = put(tree({"f": FILE}), TWO, reverse=True)
    assert names(outcome.findings) == ["conflict", "conflict"]


# ---------------------------------------------------------------- permissions


def test_line_ends_of_the_target_are_used_where_the_patch_allows_it() -> None:
    base = tree({"f": FILE.replace("\n", "\r\n")})
    assert names(put(base, TWO).findings) == ["line-endings"]
    outcome = put(base, TWO, Rule(allow=Allow(line_endings="target")))
    assert base.with_changes(outcome.changes).files["f"].data == DONE.replace("\n", "\r\n").encode()


def test_mixed_line_ends_are_no_line_end_of_the_target() -> None:
    base = tree({"f": FILE.replace("line 8\n", "line 8\r\n")})
    outcome = put(base, TWO, Rule(allow=Allow(line_endings="target")))
    assert outcome.state == "refused"


def test_fuzz_is_noted() -> None:
    lines = ["other\n" if n == 6 else x for n, x in enumerate(BASE)]
    outcome = put(tree({"f": "".join(lines)}), TWO, Rule(allow=Allow(fuzz=1)))
    assert outcome.state == "applied"
    assert [p.fuzz for p in outcome.places] == [1, 0]
    assert "fuzz 1" in words(outcome.notes)


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("path", ["../x", ".git/config", "d/../x"])
def test_root_never_makes_a_path_that_leaves_the_tree(path: str) -> None:
    made = patch(create("x", "a"))
    outcome = apply_patch(tree({}), made, root=Root(1, path.rpartition("/")[0]))
    assert outcome.state == "refused"
    assert names(outcome.findings) == ["path-escape"]


def test_moved_file_is_named_and_not_followed() -> None:
    outcome = put(tree({"core/f": FILE}), TWO)
    assert names(outcome.findings) == ["missing-target"]
    assert "core/f" in words(outcome.findings)


def test_name_too_short_for_the_strip_level_is_a_missing_target() -> None:
    outcome = apply_patch(tree({"f": FILE}), patch(TWO), root=Root(3))
    assert names(outcome.findings) == ["missing-target"]
    assert "-p3" in words(outcome.findings)


def test_put_in_between_is_kept() -> None:
    lines = put_in(BASE, 20, "mine\n")
    after = applied(tree({"f": "".join(lines)}), TWO)
    assert "mine\n" in texts(after)["f"]


# ---------------------------------------------------------------- size


def seconds(base: MemoryTree, text: str) -> float:
    made = patch(text)
    began = time.process_time()
    apply_patch(base, made, root=Root())
    return time.process_time() - began


def test_thousands_of_moved_hunks_among_common_lines_take_linear_time() -> None:
    rng = random.Random(1)
    lines = [f"v{rng.randrange(100)}\n" for _ in range(40_000)]
    out = []
    for n in range(5, 39_000, 10):
        body = f" {lines[n]} {lines[n + 1]}-{lines[n + 2]}+new\n {lines[n + 3]} {lines[n + 4]}"
        out.append(f"@@ -{n + 1},5 +{n + 1},5 @@\n{body}")
    text = "--- a/f\n+++ b/f\n" + "".join(out)
    assert seconds(tree({"f": "top\n" + "".join(lines)}), text) < 5


def test_one_huge_hunk_that_stands_nowhere_is_explained_in_time() -> None:
    lines = numbered(1, 50_000)
    text = "--- a/f\n+++ b/f\n@@ -1,50001 +1,50001 @@\n"
    text += "".join(" " + x for x in lines) + "-x\n+y\n"
    assert seconds(tree({"f": "".join(lines[::2])}), text) < 5


def test_many_new_files_and_many_mails_take_linear_time() -> None:
    made = "".join(f"--- /dev/null\n+++ b/d{n % 9}/{n}\n@@ -0,0 +1 @@\n+x\n" for n in range(3000))
    assert seconds(tree({}), made) < 3
    mail = "From " + "1" * 40 + " Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n"
    mails = "".join(
        f"{mail}--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-{n}\n+{n + 1}\n end\n-- \n2\n\n"
        for n in range(500)
    )
    assert seconds(tree({"f": "0\nend\n"}), mails) < 3
