"""Lint: what it says about a patch file, and that --fix changes no effect."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine.parse import parse, scan
from patchkit.series.folder import read_series
from patchkit.series.lint import RULES, Lint, fix_patch, lint_patch, lint_series
from tests.cases.loader import Case, load_cases, snapshot

HEADER = (
    b"From: A. Author <author@example.invalid>\nDate: Wed, 1 Jan 2031 00:00:01 +0000\n"
    b"Subject: Keep a reserve\nOrigin: vendor\nForwarded: no\nLast-Update: 2031-01-02\n\n"
    b"Long answers starve short ones.\n---\n\n"
)
GIT = b"diff --git a/x.py b/x.py\nindex 1234567..89abcde 100644\n"
HUNK = b"@@ -1,5 +1,5 @@\n a\n \n-b\n+c\n \n d\n"
PLAIN = b"--- a/x.py\n+++ b/x.py\n" + HUNK
GOOD = HEADER + GIT + PLAIN

CASES = {c.name: c for c in load_cases() if not c.generated}
PATCHES = {
    f"{c.name}/{path}": data for c in CASES.values() for path, data in c.patch_files() if data
}


def rules(data: bytes) -> list[tuple[str, str]]:
    """(rule, level) of each lint."""
    return [(lint.rule, lint.level) for lint in lint_patch(data, "p.patch")]


def only(data: bytes, rule: str) -> Lint:
    """The one lint of the file, which is of this rule."""
    [lint] = lint_patch(data, "p.patch")
    assert lint.rule == rule
    return lint


def test_a_canonical_patch_has_nothing_to_say_and_keeps_its_bytes() -> None:
    assert lint_patch(GOOD, "p.patch") == ()
    assert fix_patch(GOOD, "p.patch") == GOOD


# ------------------------------------------------------------------ what --fix mends


@pytest.mark.parametrize(
    ("rule", "bad", "line"),
    [
        ("byte-order-mark", b"\xef\xbb\xbf" + GOOD, 1),
        ("signature", GOOD + b"-- \n2.43.0\n\n", 22),
        ("trailing-junk", GOOD + b"\n\n", 22),
        ("trailing-junk", GOOD + b"Tested on one machine.\n", 22),
        ("surplus-context", GOOD + b" e\n", 22),
        ("blank-context", GOOD.replace(b"\n \n", b"\n\n"), 17),
        ("line-endings", HEADER.replace(b"\n", b"\r\n") + GIT + PLAIN, 1),
        ("line-endings", GOOD.replace(b"b/x.py\n@@", b"b/x.py\r\n@@"), 14),
    ],
)
def test_noise_is_named_and_mended_back_to_the_canonical_bytes(
    rule: str, bad: bytes, line: int
) -> None:
    lint = only(bad, rule)
    assert (lint.where.patch, lint.where.patch_line) == ("p.patch", line)
    assert lint.fix
    assert fix_patch(bad, "p.patch") == GOOD


def test_a_here_document_goes_with_both_its_lines() -> None:
    bad = b"cat > /tmp/x.patch <<'EOF'\n" + GOOD + b"EOF\npatch -p1 < /tmp/x.patch\n"
    found = [x for x in lint_patch(bad, "p") if x.rule == "here-document"]
    assert [x.where.patch_line for x in found] == [1, 23]
    assert fix_patch(bad, "p") == GOOD


def test_several_things_are_mended_at_once() -> None:
    bad = b"\xef\xbb\xbf" + GOOD.replace(b"\n \n", b"\n\n") + b" e\n\nprose\n-- \n2.43.0"
    assert fix_patch(bad, "p") == GOOD


def test_an_index_line_that_lies_goes_and_a_mode_line_comes() -> None:
    forged = HEADER + GIT.replace(b"1234567..", b"0000000..") + PLAIN
    assert only(forged, "index-line").fix
    assert fix_patch(forged, "p") == HEADER + GIT.partition(b"index")[0] + PLAIN

    new = HEADER + b"diff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    assert only(new, "mode-line").fix
    assert b"a/n b/n\nnew file mode 100644\n--- /dev/null\n" in fix_patch(new, "p")

    old = HEADER + b"diff --git a/n b/n\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    assert b"a/n b/n\ndeleted file mode 100644\n" in fix_patch(old, "p")


def test_a_dep3_header_becomes_a_mail_with_the_same_content() -> None:
    dep3 = (
        b"Description: Keep a reserve\n Long answers starve short ones.\n"
        b"Author: A. Author <author@example.invalid>\nOrigin: vendor\nForwarded: no\n"
        b"Last-Update: 2031-01-02\n\n"
    )
    assert ("header", "warning") in rules(dep3 + GIT + PLAIN)
    fixed = fix_patch(dep3 + GIT + PLAIN, "p")
    assert fixed.startswith(b"From: A. Author <author@example.invalid>\nSubject: Keep a reserve\n")
    assert fixed.endswith(b"\nLong answers starve short ones.\n---\n" + GIT + PLAIN)


# ------------------------------------------------------------------ counts


@pytest.mark.parametrize("name", ["count-too-large", "mail-signature-eaten"])
def test_counts_that_every_reader_refuses_are_corrected(name: str) -> None:
    [(path, data)] = CASES[name].patch_files()
    errors = [lint for lint in lint_patch(data, path) if lint.level == "error"]
    assert [lint.rule for lint in errors] == ["corrupt-hunk-count"]
    assert errors[0].fix
    parse(fix_patch(data, path), path)


@pytest.mark.parametrize(
    "name",
    ["count-too-large-at-end", "count-too-small-loses-an-addition", "truncated"],
)
def test_counts_that_may_hide_a_loss_are_left_to_a_person(name: str) -> None:
    [(path, data)] = CASES[name].patch_files()
    assert fix_patch(data, path) == data
    assert not any(lint.fix for lint in lint_patch(data, path) if lint.level == "error")


def test_context_that_was_cut_off_the_end_is_filled_in_as_gnu_patch_does() -> None:
    [(path, data)] = CASES["trailing-blank-context-cut"].patch_files()
    assert fix_patch(data, path) == data + b" \n \n"
    assert fix_patch(data.replace(b"-16,4 +16,5", b"-16,5 +16,6"), path).count(b"\n \n") == 0


def test_a_missing_last_line_end_is_added_where_a_wrong_guess_cannot_be_applied() -> None:
    assert fix_patch(GOOD[:-1], "p") == GOOD
    added = HEADER + GIT + b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    assert fix_patch(added, "p") == added


# ------------------------------------------------------------------ what only a person can mend


@pytest.mark.parametrize(
    ("rule", "level", "bad"),
    [
        ("line-endings", "warning", GOOD.replace(b"\n", b"\r\n")),
        ("absolute-path", "warning", HEADER + PLAIN.replace(b" a/", b" /").replace(b" b/", b" /")),
        ("two-names", "warning", GOOD.replace(b"--- a/x.py", b"--- a/x.py.orig")),
        ("backslash", "warning", HEADER + PLAIN.replace(b"/x.py", b"\\x.py")),
        ("line-numbers", "warning", GOOD.replace(b"-1,5 +1,5", b"-1,5 +9,5")),
        ("short-context", "note", HEADER + PLAIN.replace(b"5", b"4").replace(b" \n d", b" d")),
        ("text-like-a-diff", "warning", GOOD.replace(b"Long", b"  --- a/y\n  +++ b/y\nLong")),
        ("text-like-a-diff", "warning", GOOD.replace(b"---\n", b"---\nPrereq: 1.0\n", 1)),
        ("junk-between", "warning", GOOD + b"prose\n" + PLAIN.replace(b"x.py", b"y.py")),
        ("left-out", "warning", GOOD + b"Only in b: z\n" + PLAIN.replace(b"x.py", b"y.py")),
        ("quilt-reads-otherwise", "warning",
         HEADER + b"diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n"),
    ],
)  # fmt: skip
def test_what_could_change_the_effect_is_named_and_left(rule: str, level: str, bad: bytes) -> None:
    lint = only(bad, rule)
    assert (lint.level, lint.fix) == (level, "")
    assert fix_patch(bad, "p.patch") == bad


def test_header_lines_keep_their_cr_where_bodies_have_one() -> None:
    """GNU patch strips CRs from bodies by what the header lines have."""
    bad = GOOD.replace(b"+c\n", b"+c\r\n").replace(b"b/x.py\n@@", b"b/x.py\r\n@@")
    assert only(bad, "line-endings").fix == ""
    assert fix_patch(bad, "p") == bad


def test_a_mark_that_hides_a_mode_change_from_git_stays() -> None:
    bad = b"\xef\xbb\xbfdiff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    assert fix_patch(bad, "p") == bad


def test_a_tail_in_which_gnu_patch_could_see_a_diff_stays() -> None:
    for tail in (b"  --- a/y\n  +++ b/y\n", b"3c3\n", b"*** a\n"):
        assert fix_patch(GOOD + b"prose\n" + tail, "p") == GOOD + b"prose\n" + tail


def test_several_mails_are_said_once() -> None:
    [(path, data)] = CASES["mbox-three-mails"].patch_files()
    [lint] = [x for x in lint_patch(data, path) if x.rule == "several-mails"]
    assert "3 mails" in lint.message
    assert "import" in lint.next


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"", ["no header"]),
        (b"Just prose.\n\n", ["no mail", "no From", "no Date"]),
        (HEADER.replace(b"Wed, 1 Jan", b"1st of Jan"), ["date is none"]),
        (HEADER.replace(b"2031-01-02", b"soon"), ["Last-Update is no day"]),
        (HEADER.replace(b"Origin: vendor\n", b""), ["no field Origin"]),
        (HEADER.replace(b"Origin: vendor\n", b"Patchkit-Allow: fuzz=1\n"), ["series is exact"]),
        (HEADER.replace(b"Long answers", b"diff - answers"), ["would end it for git am"]),
        (HEADER.replace(b"A. Author <", b"A. Author ("), ["author is not"]),
    ],
)
def test_header_faults_are_said(header: bytes, words: list[str]) -> None:
    text = "\n".join(x.message for x in lint_patch(header + GIT + PLAIN, "p") if x.rule == "header")
    assert [word for word in words if word not in text] == []


# ------------------------------------------------------------------ everything


def test_parser_findings_are_errors_with_their_own_names() -> None:
    [(path, data)] = CASES["bare-hunk-header"].patch_files()
    errors = [x for x in lint_patch(data, path) if x.level == "error"]
    assert [(x.rule, x.where.patch_line) for x in errors] == [("bare-hunk-header", 5)]
    assert "expected @@ -LINE" in errors[0].message


@pytest.mark.parametrize("name", PATCHES)
def test_fixing_twice_changes_nothing_and_leaves_nothing_that_can_be_fixed(name: str) -> None:
    data = PATCHES[name]
    found = lint_patch(data, "p")
    assert {x.rule for x in found if x.level != "error"} <= set(RULES)
    fixed = fix_patch(data, "p")
    assert (fixed != data) == any(x.fix for x in found)
    assert fix_patch(fixed, "p") == fixed
    assert not [x for x in lint_patch(fixed, "p") if x.fix]


TAILS = [b"", b"-- \n2.43.0\n\n", b"\nprose", b"EOF\n", b" surplus\n", b"\n\n"]
HEADS = [b"", b"\xef\xbb\xbf", b"cat > x <<EOF\n", b"From: A <a@b>\r\nSubject: x\r\n\r\n"]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(PATCHES)),
    st.sampled_from(HEADS),
    st.sampled_from(TAILS),
    st.booleans(),
)
def test_a_fixed_patch_reads_as_the_same_change(
    name: str, head: bytes, tail: bytes, strip: bool
) -> None:
    data = head + PATCHES[name] + tail
    if strip:
        data = data.replace(b"\n \n", b"\n\n")
    before, after = scan(data, "p"), scan(fix_patch(data, "p"), "p")
    if before.findings:
        return
    assert not after.findings
    assert [(s.kind, s.old_path, s.new_path) for s in before.patch.sections] == [
        (s.kind, s.old_path, s.new_path) for s in after.patch.sections
    ]
    assert [h.lines for _, _, h in before.patch.hunks()] == [
        h.lines for _, _, h in after.patch.hunks()
    ]


APPLIED = [
    c
    for c in CASES.values()
    if c.verdict == "applied"
    and not c.is_series
    and not c.installed
    and any(fix_patch(d, "p") != d for _, d in c.patch_files())
]


@pytest.mark.skipif(not shutil.which("patch"), reason="GNU patch is not installed")
@pytest.mark.parametrize("case", APPLIED, ids=lambda c: c.name)
@pytest.mark.parametrize("tool", ["git", "patch"])
def test_readers_that_take_a_patch_give_the_same_files_after_fix(
    case: Case, tool: str, tmp_path: Path
) -> None:
    [(_, data)] = case.patch_files()
    before = applied(case, data, tool, tmp_path / "before")
    after = applied(case, fix_patch(data, "p"), tool, tmp_path / "after")
    assert before in (None, after)


def applied(case: Case, data: bytes, tool: str, tree: Path) -> dict[bytes, tuple[str, str]] | None:
    """The files after a reader took the patch; None where it refuses."""
    case.lay_out(tree)
    strip = f"-p{case.expect['strip']}"
    command = {
        "git": ["git", "apply", strip, "-"],
        "patch": ["patch", "--forward", "--batch", "-F0", "-r-", "--no-backup-if-mismatch", strip],
    }[tool]
    env = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tree.parent), "LC_ALL": "C"}
    where = tree / case.expect.get("directory", "")
    done = subprocess.run(command, cwd=where, env=env, input=data, capture_output=True, check=False)
    return snapshot(tree) if done.returncode == 0 else None


def test_a_folder_is_linted_patch_by_patch_and_its_strays_are_named(tmp_path: Path) -> None:
    (tmp_path / "series").write_bytes(b"a.patch\nb.patch\n")
    (tmp_path / "a.patch").write_bytes(GOOD + b"EOF\n")
    (tmp_path / "b.patch").write_bytes(
        GOOD.replace(b"x.py", b"y.py").replace(b"@@ -1,5", b"@@ -1,7")
    )
    (tmp_path / "c.patch").write_bytes(GOOD)
    found = lint_series(read_series(tmp_path, strict=False))
    assert [(x.rule, x.where.patch) for x in found] == [
        ("corrupt-hunk-count", "b.patch"),
        ("trailing-junk", "a.patch"),
        ("unlisted", "c.patch"),
    ]


def test_a_lint_as_json_leaves_absent_parts_out() -> None:
    lint = only(GOOD + b"EOF\n", "trailing-junk")
    assert lint.to_json() == {
        "rule": "trailing-junk",
        "level": "warning",
        "message": lint.message,
        "patch": "p.patch",
        "patch_line": 22,
        "fix": "takes it away",
    }
