"""Patch files into sections and hunks; what is refused, where, and with what words."""

from __future__ import annotations

import pytest

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK
from patchkit.engine.parse import MAX_BYTES, names_of, parse, scan
from patchkit.errors import Refused

HUNK = b"@@ -1,3 +1,3 @@ def f():\n a\n-b\n+c\n d\n"
PLAIN = b"--- a/x.py\n+++ b/x.py\n" + HUNK
GIT = b"diff --git a/x.py b/x.py\nindex 1234567..89abcde 100644\n" + PLAIN


def findings(data: bytes) -> list[tuple[str, int | None, int | None]]:
    """(name, patch line, hunk) of each."""
    found = scan(data, "p.patch").findings
    return [(f.name, f.where.patch_line, f.where.hunk) for f in found]


def notes(data: bytes) -> list[tuple[str, int | None]]:
    found = scan(data, "p.patch")
    assert not found.findings
    return [(f.name, f.where.patch_line) for f in found.patch.notes]


# ------------------------------------------------------------------ sections


def test_a_git_section_gives_names_ids_modes_and_hunks() -> None:
    patch = parse(b"Subject: x\n\nwhy\n" + GIT, "p.patch")
    [section] = patch.sections
    assert patch.header == b"Subject: x\n\nwhy\n"
    assert (section.kind, section.git) == ("modify", True)
    assert (section.old_path, section.new_path) == ("a/x.py", "b/x.py")
    assert (section.old_id, section.new_id) == ("1234567", "89abcde")
    assert (section.old_mode, section.new_mode) == (REGULAR, None)
    assert (section.raw, section.patch_line) == (GIT, 4)
    [hunk] = section.hunks
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (1, 3, 1, 3)
    assert hunk.lines == ((b" ", b"a\n"), (b"-", b"b\n"), (b"+", b"c\n"), (b" ", b"d\n"))
    assert (hunk.heading, hunk.patch_line) == (b"def f():", 8)


@pytest.mark.parametrize(
    ("lines", "kind", "old", "new"),
    [
        (b"new file mode 100755\nindex 0000000..e69de29\n", "create", None, "b/x"),
        (b"deleted file mode 100644\nindex e69de29..0000000\n", "delete", "a/x", None),
        (b"old mode 100644\nnew mode 100755\n", "modify", "a/x", "b/x"),
        (b"similarity index 100%\nrename from x\nrename to y\n", "rename", "x", "y"),
        (b"similarity index 100%\ncopy from x\ncopy to y\n", "copy", "x", "y"),
        (b"rename old x\nrename new y\n", "rename", "x", "y"),
    ],
)
def test_sections_without_hunks_say_what_they_do(
    lines: bytes, kind: str, old: str | None, new: str | None
) -> None:
    target = b"y" if kind in ("rename", "copy") else b"x"
    [section] = parse(b"diff --git a/x b/" + target + b"\n" + lines, "p").sections
    assert (section.kind, section.old_path, section.new_path) == (kind, old, new)
    assert section.bare_names == (kind in ("rename", "copy"))
    assert names_of(section) == tuple(n for n in (old, new) if n is not None)


def test_modes_are_git_s_four() -> None:
    def mode(text: bytes) -> int | None:
        return parse(b"diff --git a/x b/x\nnew file mode " + text + b"\n", "p").sections[0].new_mode

    assert mode(b"100664") == REGULAR
    assert mode(b"100775") == EXECUTABLE
    assert mode(b"120000") == SYMLINK
    assert findings(b"diff --git a/x b/x\nnew file mode 040000\n") == [("no-file-header", 2, None)]
    assert findings(b"diff --git a/x b/x\nnew file mode 160000\n") == [("unsupported", 1, None)]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (b"/dev/null", b"b/x", "create"),
        (b"/dev/null\t1970-01-01", b"b/x", "create"),
        (b"a/x\t1970-01-01 05:30:00.000000000 +0530", b"b/x\t2031-01-01 00:00:01 +0000", "create"),
        (b"a/x\t1969-12-31 14:00:00 -1000", b"b/x", "create"),
        (b"a/x\t1970-01-01 00:00:01 +0000", b"b/x", "modify"),
        (b"a/x\t1970-01-01 05:30:00 +0000", b"b/x", "modify"),
        (b"a/x", b"b/x", "modify"),
    ],
)
def test_a_plain_diff_makes_a_file_where_its_old_side_is_none(
    old: bytes, new: bytes, kind: str
) -> None:
    data = b"--- " + old + b"\n+++ " + new + b"\n@@ -0,0 +1 @@\n+x\n"
    [section] = parse(data, "p").sections
    assert section.kind == kind
    assert section.new_path == "b/x"
    assert section.old_path == ("a/x" if kind == "modify" else None)


def test_an_epoch_time_on_a_file_with_lines_is_just_its_age() -> None:
    data = b"--- a/x\t1970-01-01 00:00:00 +0000\n+++ b/x\n" + HUNK
    assert parse(data, "p").sections[0].kind == "modify"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (b"a/x y.py\t", "a/x y.py"),
        (b"a/x y.py\t2031-01-02 03:04:05.678 +0530", "a/x y.py"),
        (b"a/x.py 2031-01-02 03:04:05 +0100", "a/x.py"),
        (b"a/x.py   2031-01-02 03:04:05 +01:00", "a/x.py"),
        (b"a/x.py\tWed Jan  1 00:00:01 2031", "a/x.py"),
        (b"a/x.py\t(revision 12)", "a/x.py"),
        (b"a/x.py\r", "a/x.py"),
        (b'"a/caf\\303\\251.py"\t2031-01-02', "a/café.py"),
        (b'a/not"quoted".py', 'a/not"quoted".py'),
        (b'"a/broken', '"a/broken'),
    ],
)
def test_the_name_of_a_plain_diff_ends_where_its_time_begins(written: bytes, name: str) -> None:
    data = b"--- " + written + b"\n+++ b/x\n" + HUNK
    assert parse(data, "p").sections[0].old_path == name


def test_a_git_section_does_not_take_a_time_off_a_name() -> None:
    name = b"x 2031-01-01 00:00:01 +0100"
    data = b"diff --git a/%s b/%s\nindex 1..2 100644\n--- a/%s\n+++ b/%s\n" % ((name,) * 4)
    assert parse(data + HUNK, "p").sections[0].new_path == "b/" + name.decode()


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (b"a/x b/x", "a/x", "b/x"),
        (b"a/x b/run me b/x b/run me", "a/x b/run me", "b/x b/run me"),
        (b"x x", "x", "x"),
        (b"old/sub/x new/sub/x", "old/sub/x", "new/sub/x"),
        (b"prefix/x p/x", "prefix/x", "p/x"),
        (b"a/deep/er/x b/er/x", "a/deep/er/x", "b/er/x"),
        (b'"a/caf\\303\\251" "b/caf\\303\\251"', "a/café", "b/café"),
        (b'a/x "b/x"', "a/x", "b/x"),
        (b'"a/x" b/x', "a/x", "b/x"),
    ],
)
def test_the_git_line_alone_names_the_file_where_nothing_else_does(
    line: bytes, old: str, new: str
) -> None:
    data = b"diff --git " + line + b"\nold mode 100644\nnew mode 100755\n"
    if old == "a/deep/er/x":
        assert findings(data) == [("no-file-header", 1, None)]
    else:
        [section] = parse(data, "p").sections
        assert (section.old_path, section.new_path) == (old, new)


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (b"new file mode 100644\ndeleted file mode 100644\n", "contradict"),
        (b"rename from x\n", "only one"),
        (b"rename from x\nrename to y\n--- a/z\n+++ b/y\n" + HUNK, "twice"),
        (b"--- a/x\n" + HUNK, '"+++"'),
        (b"--- a/x\n--- a/y\n+++ b/x\n" + HUNK, "another file"),
        (b"--- /dev/null\n+++ /dev/null\n" + HUNK, "/dev/null"),
        (b"old mode 100644\nnew mode 120000\n", "link"),
        (b"new file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+x\n", "another file"),
        (HUNK, "missing"),
    ],
)
def test_headers_that_contradict_themselves_are_refused(lines: bytes, word: str) -> None:
    [finding] = scan(b"diff --git a/x b/x\n" + lines, "p").findings
    assert finding.name == "no-file-header"
    assert word in finding.message


def test_a_hand_made_git_header_may_leave_out_new_file_mode() -> None:
    data = b"diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
    [section] = parse(data, "p").sections
    assert (section.kind, section.old_path, section.new_mode) == ("create", None, None)


def test_several_mails_give_their_sections_in_order() -> None:
    mail = b"From 1234567 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: %s\n\n---\n"
    other = GIT.replace(b"x.py", b"y.py")
    data = mail % b"one" + GIT + b"-- \n2.43.0\n\n" + mail % b"two" + other + b"-- \n2.43.0\n\n"
    assert [s.new_path for s in parse(data, "p").sections] == ["b/x.py", "b/y.py"]


# ------------------------------------------------------------------ hunks


def test_a_blank_context_line_may_have_lost_its_space() -> None:
    [section] = parse(b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n\n-b\n+c\n\n", "p").sections
    assert section.hunks[0].lines == ((b" ", b"\n"), (b"-", b"b\n"), (b"+", b"c\n"), (b" ", b"\n"))


def test_only_line_feeds_end_lines() -> None:
    odd = "a\r\x0b\x0c\x1c\x85\u2028b".encode()
    data = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n " + odd + b"\n-b\n+c\n"
    assert parse(data, "p").sections[0].hunks[0].lines[0] == (b" ", odd + b"\n")


def test_the_no_newline_marker_takes_the_line_end_of_the_line_above() -> None:
    mark = b"\\ Pas de fin de ligne\n"
    data = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n" + mark + b"+b\n" + mark
    [hunk] = parse(data, "p").sections[0].hunks
    assert hunk.lines == ((b" ", b"a\n"), (b"-", b"b"), (b"+", b"b"))


def test_a_line_without_end_inside_a_file_is_refused() -> None:
    mark = b"\\ No newline at end of file\n"
    data = b"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n" + mark + b"-b\n+c\n d\n"
    assert findings(data) == [("corrupt-hunk-count", 3, 1)]


@pytest.mark.parametrize(
    ("header", "body", "old", "new"),
    [
        (b"@@ -1,4 +1,4 @@", b" a\n-b\n+c\n d\n", 3, 3),
        (b"@@ -1,2 +1,3 @@", b" a\n-b\n+c\n d\n", 3, 3),
        (b"@@ -1,3 +1,2 @@", b" a\n-b\n+c\n d\n", 3, 3),
        (b"@@ -1,1 +1,1 @@", b" a\n-b\n+c\n d\n", 3, 3),
        (b"@@ -1,9 +1,9 @@", b" a\n-b\n+c\n d\n\n\n", 3, 3),
        (b"@@ -1,5 +1,5 @@", b" a\n-b\n+c\n d\n\n\nEnd.\n", 5, 5),
    ],
)
@pytest.mark.parametrize(
    "after", [b"", b"diff --git a/y b/y\nold mode 100644\nnew mode 100755\n", HUNK, b"-- \n2.4.1\n"]
)
def test_wrong_counts_are_refused_and_can_be_recounted(
    header: bytes, body: bytes, old: int, new: int, after: bytes
) -> None:
    if body.endswith(b"End.\n") or (after == HUNK and body.endswith(b"\n\n")):
        after = b""
    after = after.replace(b"-1,3 +1,3", b"-40,3 +40,3")
    data = b"--- a/x\n+++ b/x\n" + header + b"\n" + body + after
    stated_right = (old, new) == (5, 5)
    if not stated_right:
        found = scan(data, "p.patch").findings
        assert [(f.name, f.where.file, f.where.hunk) for f in found] == [
            ("corrupt-hunk-count", "x", 1)
        ]
        assert "--recount" in found[0].next
        assert f"{old} old and {new} new" in found[0].found
    patch = parse(data, "p.patch", recount=True)
    hunk = patch.sections[0].hunks[0]
    assert (hunk.old_count, hunk.new_count) == (old, new)
    assert hunk.old == tuple(c for t, c in hunk.lines if t != b"+")
    assert len(hunk.old) == old
    assert bool(patch.notes) != stated_right


def test_a_change_left_over_behind_a_hunk_is_never_lost() -> None:
    for left in (b"+lost\n", b"-lost\n", b" kept\n+lost\n", b"\n+lost\n", b"- \n"):
        [finding] = scan(PLAIN + left, "p").findings
        assert finding.name == "corrupt-hunk-count"
        assert "would be lost" in finding.message


def test_what_a_file_may_hold_behind_its_last_hunk() -> None:
    for tail in (
        b"-- \n2.43.0\n\n",
        b"--\n2.43.0\n",
        b"-- ",
        b"\nTested.\n",
        b"EOF\n",
        b"\n\n",
        b"Only in b: y\n",
        b"\n  indented prose\n",
    ):
        assert notes(PLAIN + tail) == []


def test_surplus_context_is_noted_with_its_lines() -> None:
    assert notes(PLAIN + b" more\n") == [("corrupt-hunk-count", 8)]
    assert notes(PLAIN + b" more\n and more\n\nprose\n") == [("corrupt-hunk-count", 8)]
    assert "lines 8 to 9" in scan(PLAIN + b" more\n more\n", "p").patch.notes[0].message


def test_a_hunk_behind_a_stray_blank_line_is_not_skipped() -> None:
    data = PLAIN + b"\n" + HUNK.replace(b"-1,3 +1,3", b"-9,3 +9,3")
    assert findings(data) == [("corrupt-hunk-count", 8, 1)]
    assert len(parse(data, "p", recount=True).sections[0].hunks) == 2


def test_a_header_that_counts_the_next_file_s_name_lines_is_refused() -> None:
    data = PLAIN.replace(b"-1,3 +1,3", b"-1,4 +1,4") + PLAIN.replace(b"x.py", b"y.py")
    [finding] = scan(data, "p").findings
    assert finding.name == "corrupt-hunk-count"
    assert "next file" in finding.message
    assert [s.new_path for s in parse(data, "p", recount=True).sections] == ["b/x.py", "b/y.py"]


def test_dashes_and_pluses_in_a_body_are_content() -> None:
    body = b" a\n--- b/x\n+++ c/y\n+diff --git\n+@@ -1 +1 @@\n+-- \n d\n"
    [section] = parse(b"--- a/x\n+++ b/x\n@@ -1,3 +1,6 @@\n" + body, "p").sections
    assert section.hunks[0].old == (b"a\n", b"-- b/x\n", b"d\n")


def test_a_file_cut_in_its_last_line_is_refused_with_that_line() -> None:
    [finding] = scan(PLAIN[:-1], "p").findings
    assert "(line 7)" in finding.message
    [finding] = scan(PLAIN[:-4], "p").findings
    assert "cut off" in finding.details[0]


@pytest.mark.parametrize("header", [b"@@", b"@@ -1,3 @@", b"@@ -a,3 +1,3 @@", b"@@ -1,3 +1,3"])
def test_hunk_headers_without_numbers_are_refused_wherever_they_stand(header: bytes) -> None:
    bare = header + HUNK[24:]
    assert findings(PLAIN + bare) == [("bare-hunk-header", 8, 2)]
    assert findings(b"--- a/x\n+++ b/x\n" + bare) == [("bare-hunk-header", 3, 1)]
    assert findings(PLAIN + b"\nprose\n" + bare) == [("bare-hunk-header", 10, None)]


def test_a_hunk_of_no_file_is_refused_wherever_it_stands() -> None:
    assert findings(b"Fix.\n\n" + HUNK) == [("no-file-header", 3, None)]
    assert findings(PLAIN + b"prose\n" + HUNK) == [("no-file-header", 9, None)]


def test_prose_may_begin_with_two_at_signs() -> None:
    assert notes(b"@@ is an operator\n" + PLAIN) == []


# ------------------------------------------------------------------ whole sections


def test_order_is_judged_by_the_old_side() -> None:
    def two(first: bytes, second: bytes) -> bytes:
        return PLAIN.replace(b"-1,3 +1,3", first) + HUNK.replace(b"-1,3 +1,3", second)

    assert findings(two(b"-1,3 +1,3", b"-4,3 +4,3")) == []
    assert findings(two(b"-1,3 +1,3", b"-3,3 +3,3")) == [("overlapping-hunks", 8, 2)]
    assert findings(two(b"-9,3 +9,3", b"-1,3 +1,3")) == [("hunks-out-of-order", 8, 2)]
    assert findings(two(b"-5,3 +5,3", b"-3,3 +3,3")) == [("hunks-out-of-order", 8, 2)]


def test_a_hunk_without_context_needs_to_be_the_whole_file() -> None:
    def one(header: bytes, body: bytes) -> bytes:
        return b"--- a/x\n+++ b/x\n@@ " + header + b" @@\n" + body

    assert findings(one(b"-1,2 +1", b"-a\n-b\n+c\n")) == []
    assert findings(one(b"-0,0 +1", b"+c\n")) == []
    assert findings(one(b"-1 +0,0", b"-c\n")) == []
    assert findings(one(b"-2 +2", b"-a\n+b\n")) == [("no-context", 3, 1)]
    assert findings(one(b"-2,0 +3", b"+b\n")) == [("no-context", 3, 1)]
    assert findings(one(b"-1,0 +2", b"+b\n")) == [("no-context", 3, 1)]
    several = one(b"-1 +1", b"-a\n+b\n") + b"@@ -9 +9 @@\n-a\n+b\n"
    assert findings(several) == [("no-context", 3, 1), ("no-context", 6, 2)]


def test_new_and_deleted_files_have_one_side() -> None:
    new = b"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n"
    assert findings(new + b"@@ -0,0 +1 @@\n+x\n") == []
    assert findings(new + b"@@ -1 +1,2 @@\n x\n+y\n") == [("corrupt-hunk-count", 5, 1)]
    twice = b"@@ -0,0 +1 @@\n+x\n@@ -0,0 +2 @@\n+y\n"
    assert findings(new + twice) == [("overlapping-hunks", 7, 2)]
    gone = b"--- a/x\n+++ /dev/null\n@@ -1,2 +1 @@\n-x\n y\n"
    assert findings(gone) == [("corrupt-hunk-count", 3, 1)]


def test_sections_that_change_nothing_are_refused() -> None:
    assert findings(b"diff --git a/x b/x\n") == [("no-op", 1, None)]
    assert findings(PLAIN + b"diff --git a/y b/y\nindex 1..2 100644\n") == [("no-op", 8, None)]
    same = b"diff --git a/y b/y\nold mode 100644\nnew mode 100644\n"
    assert findings(same) == [("no-op", 1, None)]
    assert findings(b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n b\n") == [("no-op", 3, 1)]


def test_two_equal_sections_are_refused_even_with_others_between() -> None:
    other = PLAIN.replace(b"x.py", b"y.py")
    found = scan(PLAIN + other + PLAIN, "p").findings
    assert [(f.name, f.where.patch_line) for f in found] == [("duplicate-section", 15)]
    assert "lines 1 to 7" in found[0].message


def test_plain_diff_r_output_does_not_hide_a_binary_file() -> None:
    data = PLAIN + b"diff -r a/t.bin b/t.bin\nBinary files a/t.bin and b/t.bin differ\n"
    assert findings(data) == [("binary-unsupported", 9, None)]


def test_a_git_binary_patch_is_read_over_and_refused() -> None:
    data = (
        b"diff --git a/t b/t\nindex 1..2 100644\nGIT binary patch\ndelta 3\nKcmZQ!W\n\n"
        b"literal 2\nJcmZQ$0RR91\n\n" + GIT
    )
    found = scan(data, "p")
    assert [(f.name, f.where.file) for f in found.findings] == [("binary-unsupported", "t")]
    assert [s.binary for s in found.patch.sections] == ["delta", ""]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\n \n", "white space"),
        (b"\xff\xfed\0i\0f\0f\0", "UTF-16"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"<!doctype html>\n<html>", "HTML"),
        (b"\x1b[1mdiff --git a/x b/x\x1b[m\n", "colour"),
        (b"--- a/x\r+++ b/x\r", "CR alone"),
        (b"> diff --git a/x b/x\n> @@ -1 +1 @@\n", "quoted"),
        (b"Just words.\n", "nothing"),
    ],
)
def test_a_file_without_a_diff_says_what_it_is_instead(data: bytes, word: str) -> None:
    [finding] = scan(data, "p").findings
    assert finding.name == "no-diff"
    assert word in finding.message


def test_other_kinds_of_diff_are_named() -> None:
    normal = b"diff old new\n3c3\n< a\n---\n> b\n"
    assert findings(normal) == [("not-unified", 2, None)]
    combined = b"diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,2 -1,2 +1,2 @@@\n- a\n +b\n"
    assert findings(combined) == [("not-unified", 5, None)]


def test_all_findings_of_a_file_come_in_one_run_by_line() -> None:
    data = (
        PLAIN.replace(b"-1,3 +1,3", b"-1,9 +1,9")
        + b"--- a/../../x\n+++ b/../../x\n"
        + HUNK
        + b"@@\n x\n"
        + b"--- a/y\n+++ b/y\n@@ -5 +5 @@\n-a\n+b\n"
    )
    with pytest.raises(Refused) as caught:
        parse(data, "p.patch")
    names = [f.name for f in caught.value.findings]
    assert names == [
        "corrupt-hunk-count",
        "path-escape",
        "path-escape",
        "bare-hunk-header",
        "no-context",
    ]
    assert {f.where.patch for f in caught.value.findings} == {"p.patch"}


def test_names_in_messages_cannot_reach_the_terminal_raw() -> None:
    data = b'--- /dev/null\n+++ "b/.git/\\033[2J"\n@@ -0,0 +1 @@\n+x\n'
    [finding] = scan(data, "p\x1b.patch").findings
    assert "\x1b" not in finding.message + finding.found + finding.next


def test_crlf_through_and_through_is_read_and_noted() -> None:
    data = GIT.replace(b"\n", b"\r\n")
    patch = parse(data, "p")
    assert patch.sections[0].new_path == "b/x.py"
    assert patch.sections[0].hunks[0].old[0] == b"a\r\n"
    assert patch.sections[0].hunks[0].heading == b"def f():"
    assert [n.name for n in patch.notes] == ["line-endings"]


def test_a_byte_order_mark_belongs_to_the_header() -> None:
    patch = parse(b"\xef\xbb\xbf" + GIT, "p")
    assert patch.header == b"\xef\xbb\xbf"
    assert patch.sections[0].git


def test_a_file_too_large_is_refused_unread() -> None:
    [finding] = scan(b"x" * (MAX_BYTES + 1), "p").findings
    assert finding.name == "too-large"


@pytest.mark.parametrize(
    "data",
    [
        b"diff --git " + b"a b/" * 1_000_000 + b"\nold mode 100644\nnew mode 100755\n",
        b'--- "' + b"\\141" * 200_000 + b"\n+++ b/x\n" + HUNK,
        b"<<EOF\n" * 200 + PLAIN + b"x\n" * 200_000,
        PLAIN + b" \n" * 400_000,
        PLAIN + (b"\n" * 50 + b" x\n") * 8_000,
        b"@@ -1,9999999 +1,9999999 @@\n" * 20_000,
        b"--- a/x\n+++ b/x\n" + b"@@ -1,9 +1,9 @@\n a\n" * 20_000,
    ],
    ids=["git-line", "quoted-name", "here-documents", "blanks", "surplus", "strays", "short"],
)
def test_no_input_takes_more_than_linear_time(data: bytes) -> None:
    import time

    start = time.process_time()
    scan(data, "p")
    assert time.process_time() - start < 5


def test_a_hundred_thousand_hunks_take_linear_time() -> None:
    import time

    def seconds(count: int) -> float:
        hunks = b"".join(
            b"@@ -%d,3 +%d,3 @@\n a\n-b\n+c\n d\n" % (n, n) for n in range(1, count, 3)
        )
        start = time.process_time()
        assert not scan(b"--- a/x\n+++ b/x\n" + hunks, "p").findings
        return time.process_time() - start

    seconds(3_000)
    assert seconds(60_000) < 40 * max(seconds(6_000), 0.01)
