"""import: what comes is found out and said, written exact, or listed with what settles it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from patchkit.authoring.importing import How
from patchkit.authoring.incoming import split_mails
from patchkit.authoring.names import from_file, from_subject
from patchkit.errors import UsageFault
from patchkit.series.header import parse_header
from tests.unit.authoring.importing import (
    BARE,
    GATES,
    LANES,
    MAIL,
    put,
    refused,
    said,
    write,
)
from tests.unit.authoring.making import AUTHOR, Bench


def test_a_bare_diff_gets_a_header_and_full_ids(bench: Bench, came: Path) -> None:
    ready = put(bench, write(came / "0001-name-five.diff", BARE))
    assert said(ready, "name-five.patch").startswith("bare diff")
    text = bench.patches()["name-five.patch"]
    header = parse_header(text)
    assert header.subject == "Name five"
    assert header.author == AUTHOR
    assert header.first("Last-Update") == "2031-01-31"
    assert b"index 7fc45dadc537fba2a81dd46ede4387f6bc8c56a2..246d8aa4" in text
    assert b"@@ -3,7 +3,7 @@" in text
    assert bench.check() == []


def test_a_mail_keeps_author_date_and_text_and_loses_the_rest(bench: Bench, came: Path) -> None:
    ready = put(bench, write(came / "0001-Name-line-five.patch", MAIL))
    text = bench.patches()["Name-line-five.patch"]
    header = parse_header(text)
    assert header.author == "Jörg <j@example.org>"
    assert header.date == "Wed, 1 Jan 2031 10:00:00 +0100"
    assert header.subject == "Bugfix, Core: Name line five"
    assert header.body == "It was a digit."
    assert b"2.39.5" not in text
    assert b"1 file changed" not in text
    assert "brackets" in said(ready, "Name-line-five.patch")
    assert bench.check() == []


def test_an_offset_is_said_and_written_exact(bench: Bench, came: Path) -> None:
    ready = put(
        bench, write(came / "x.patch", BARE.replace("@@ -4,5 +4,5 @@", "@@ -14,5 +14,5 @@"))
    )
    assert "offset: engine/lanes.py hunk 1 -10" in said(ready, "x.patch")
    assert b"@@ -3,7 +3,7 @@" in bench.patches()["x.patch"]
    assert bench.check() == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a/engine/", "engine/", "-p0"),
        ("a/engine/", "/usr/lib/python3/site-packages/engine/", "-p5"),
        ("a/engine/", "a/b/c/engine/", "-p3"),
        ("a/engine/lanes", "a/lanes", "in engine/"),
    ],
)
def test_the_root_is_found_and_said(
    bench: Bench, came: Path, old: str, new: str, words: str
) -> None:
    text = BARE.replace(old, new).replace(old.replace("a/", "b/", 1), new)
    ready = put(bench, write(came / "x.patch", text))
    assert words in said(ready, "x.patch")
    assert b"--- a/engine/lanes.py\n+++ b/engine/lanes.py\n" in bench.patches()["x.patch"]
    assert bench.check() == []


def test_every_mail_of_a_file_is_a_patch_and_a_cover_letter_is_left_out(
    bench: Bench, came: Path
) -> None:
    cover = (
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
        "From: A <a@b.c>\nSubject: [PATCH 0/2] Two things\n\nHello.\n\n"
    )
    second = MAIL.replace("Name line five", "Name line six").replace(
        "-line 5\n+line five\n line 6\n", " line five\n-line 6\n+line six\n"
    )
    ready = put(bench, write(came / "pr.mbox", cover + MAIL + second))
    names = ["bugfix-core-name-line-five.patch", "bugfix-core-name-line-six.patch"]
    assert [row.patch for row in ready.rows] == names
    assert "mail 2 of 2" in said(ready, names[1])
    assert "Two things" in next(f for f in ready.findings if f.name == "no-diff").message
    assert bench.check() == []


def test_a_mark_inside_a_message_does_not_split_it() -> None:
    text = b"Subject: x\n\nFrom me to you\nFrom a b c\n\n" + BARE.encode()
    assert split_mails(text) == [text]
    two = MAIL.encode() * 2
    assert len(split_mails(two)) == 2


def test_a_folder_of_mails_comes_in_by_its_numbers(bench: Bench, came: Path) -> None:
    write(came / "0002-b.patch", BARE.replace("-line 5\n+line five", "-line five\n+line V"))
    write(came / "0001-a.patch", BARE)
    put(bench, came)
    assert (bench.series / "series").read_text() == "a.patch\nb.patch\n"
    assert bench.check() == []


def test_ambiguous_fuzzy_and_corrupt_ones_are_listed_with_what_settles_them(
    bench: Bench, came: Path
) -> None:
    twice = "@@ -4,2 +4,3 @@\n same\n+new\n same\n"
    (bench.source / "engine/twice.py").write_text("0\nsame\nsame\n1\n2\n3\nsame\nsame\n")
    ambiguous = write(came / "a.patch", "--- a/engine/twice.py\n+++ b/engine/twice.py\n" + twice)
    (finding,) = refused(bench, ambiguous)
    assert finding.name == "ambiguous"
    assert finding.next == f"patchkit import {ambiguous} --accept engine/twice.py:2"
    how = How(author=AUTHOR, accept=frozenset({("engine/twice.py", 7)}))
    put(bench, ambiguous, how=how)
    assert b"@@ -5,4 +5,5 @@" in bench.patches()["a.patch"]

    fuzzy = write(came / "f.patch", BARE.replace(" line 7", " line seven"))
    (finding,) = refused(bench, fuzzy)
    assert finding.name == "conflict"
    assert finding.next.startswith(f"patchkit import --fuzz 1 {fuzzy}")
    ready = put(bench, fuzzy, how=How(author=AUTHOR, fuzz=1))
    assert "fuzz 1" in said(ready, "f.patch")
    assert b"line seven" not in bench.patches()["f.patch"]

    corrupt = write(came / "c.patch", BARE.replace("line 5", "line five")
                    .replace("+line five", "+line V").replace(",5 @@", ",6 @@"))  # fmt: skip
    (finding,) = refused(bench, corrupt)
    assert finding.name == "corrupt-hunk-count"
    assert finding.next.startswith(f"patchkit import --recount {corrupt}")
    ready = put(bench, corrupt, how=How(author=AUTHOR, recount=True))
    assert "counts corrected" in said(ready, "c.patch")
    assert bench.check() == []


def test_commands_that_settle_an_import_keep_the_options_that_were_given(
    bench: Bench, came: Path
) -> None:
    (bench.source / "engine/twice.py").write_text("0\nsame\nsame\n1\n2\n3\nsame\nsame\n")
    twice = "@@ -4,2 +4,3 @@\n same\n+new\n same\n"
    path = write(came / "a.patch", "--- a/engine/twice.py\n+++ b/engine/twice.py\n" + twice)
    given = ("--name", "lanes", "--guard", "it's")
    (finding,) = refused(bench, path, how=How(author=AUTHOR, given=given))
    words = "--name lanes --guard 'it'\"'\"'s'"
    assert finding.next == f"patchkit import {path} {words} --accept engine/twice.py:2"

    fuzzy = write(came / "f.patch", BARE.replace(" line 6", " line six"))
    how = How(author=AUTHOR, fuzz=1, given=("--fuzz", "1", "--first"))
    (finding,) = refused(bench, fuzzy, how=how)
    assert finding.next.startswith(f"patchkit import --fuzz 2 {fuzzy} --first, ")


def test_an_accepted_place_that_no_hunk_goes_to_is_called_unused(bench: Bench, came: Path) -> None:
    (bench.source / "engine/twice.py").write_text("0\nsame\nsame\n1\n2\n3\nsame\nsame\n")
    twice = "@@ -4,2 +4,3 @@\n same\n+new\n same\n"
    path = write(came / "a.patch", "--- a/engine/twice.py\n+++ b/engine/twice.py\n" + twice)

    def how(*lines: int) -> How:
        return How(author=AUTHOR, accept=frozenset(("engine/twice.py", n) for n in lines))

    found = refused(bench, path, how=how(3))
    assert [(f.name, f.where.line, f.note) for f in found] == [
        ("ambiguous", 4, False), ("unused", 3, True)
    ]  # fmt: skip
    ready = put(bench, path, how=how(7, 3))
    assert [(f.name, f.where.line) for f in ready.findings] == [("unused", 3)]
    exact = write(came / "x.patch", BARE)
    ready = put(bench, exact, how=How(author=AUTHOR, accept=frozenset({(LANES, 9)})))
    assert [(f.name, f.where.file, f.where.line) for f in ready.findings] == [("unused", LANES, 9)]
    ready = put(bench, exact, how=How(author=AUTHOR, accept=frozenset({(LANES, 4)})))
    assert ready.findings == ()


def test_every_reason_is_told_in_one_run(bench: Bench, came: Path) -> None:
    one = write(came / "1.patch", BARE.replace("line 5", "line fifty"))
    two = write(came / "2.patch", "no diff at all\n")
    three = write(came / "3.patch", BARE.replace("lanes", "nothing"))
    found = refused(bench, one, two, three)
    assert [(f.where.patch, f.name) for f in found] == [
        ("1.patch", "conflict"),
        ("2.patch", "no-diff"),
        ("3.patch", "missing-target"),
    ]


def test_what_is_there_already_is_refused_with_where(bench: Bench, came: Path) -> None:
    put(bench, write(came / "x.patch", BARE))
    (finding,) = refused(bench, write(came / "y.patch", BARE))
    assert finding.name == "duplicate"
    assert "x.patch" in finding.message
    (bench.source / LANES).write_text(
        (bench.source / LANES).read_text().replace("line 20", "line xx")
    )
    there = BARE.replace("4,5", "19,5").replace("line 5", "line 20").replace("line five", "line xx")
    for old, new in ((3, 18), (4, 19), (6, 21), (7, 22)):
        there = there.replace(f"line {old}\n", f"line {new}\n")
    from patchkit.check.locking import relock

    with bench.session() as (held, _):
        relock(held.project, "v1", held.bases)
    (finding,) = refused(bench, write(came / "z.patch", there))
    assert finding.name == "upstreamed"


def test_importing_a_copy_of_the_series_changes_nothing(bench: Bench, came: Path) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 8\n", "line eight\n"), guard="fast")
    before = bench.snapshot()
    shutil.copytree(bench.series, came / "copy")
    put(bench, came / "copy")
    assert bench.snapshot() == before
    put(bench, came / "copy" / "b.patch")
    assert bench.snapshot() == before


def test_a_quilt_folder_comes_in_whole_with_comments_guards_and_options(
    bench: Bench, came: Path
) -> None:
    (came / "sub").mkdir()
    write(came / "series", "# theirs\nsub/a.diff -p0 # why\nr.patch -R\n\nb.patch #+fast\n")
    write(came / "sub" / "a.diff", BARE.replace("a/engine", "engine").replace("b/engine", "engine"))
    write(came / "r.patch", BARE.replace("lanes", "gates").replace("line 5", "gate X").replace(
        "line five", "gate 5").replace("line", "gate"))  # fmt: skip
    write(came / "b.patch", BARE.replace("-line 5\n+line five", "-line five\n+line V"))
    write(came / "forgotten.patch", BARE)
    ready = put(bench, came)
    assert (bench.series / "series").read_text() == (
        "# theirs\nsub/a.diff # why\nr.patch\n\nb.patch #+fast\n"
    )
    assert "forgotten.patch" in {f.where.patch for f in ready.findings}
    assert b"-gate 5\n+gate X\n" in (bench.series / "r.patch").read_bytes()
    assert bench.check() == []


def test_a_name_that_is_taken_by_another_patch_is_replaced_only_when_asked(
    bench: Bench, came: Path
) -> None:
    bench.add_patch("x", (LANES, "line 5\n", "line V\n"), guard="fast")
    bench.add_patch("y", (LANES, "line 20\n", "line XX\n"))
    new = write(came / "x.patch", BARE)
    (finding,) = refused(bench, new)
    assert finding.name == "duplicate-entry"
    assert "--replace" in finding.next
    put(bench, new, how=How(author=AUTHOR, replace=True))
    assert b"+line five" in bench.patches()["x.patch"]
    assert (bench.series / "series").read_text() == "x.patch #+fast\ny.patch\n"
    assert bench.check() == []


def test_a_place_and_a_name_can_be_said(bench: Bench, came: Path) -> None:
    bench.add_patch("a", (GATES, "gate 5\n", "gate five\n"))
    bench.add_patch("b", (GATES, "gate 15\n", "gate fifteen\n"))
    put(bench, write(came / "x.patch", BARE), name="first", first=True)
    put(bench, write(came / "y.patch", BARE.replace("-line 5\n+line five", "-line five\n+line V")),
        name="second", after="a", how=How(author=AUTHOR, guard="fast"))  # fmt: skip
    assert (bench.series / "series").read_text().splitlines() == [
        "first.patch",
        "a.patch",
        "second.patch #+fast",
        "b.patch",
    ]
    assert bench.check() == []


def test_a_later_patch_that_the_new_one_breaks_is_named(bench: Bench, came: Path) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line V\n"))
    (finding,) = refused(bench, write(came / "x.patch", BARE), first=True)
    assert (finding.name, finding.where.patch) == ("conflict", "a.patch")


def test_a_patch_that_lies_in_the_folder_already_is_taken_in_under_its_name(bench: Bench) -> None:
    bench.add_patch("a", (GATES, "gate 5\n", "gate five\n"))
    at = write(bench.series / "0007-mine.patch", BARE)
    put(bench, at)
    assert (bench.series / "series").read_text() == "a.patch\n0007-mine.patch\n"
    assert bench.check() == []


def test_a_file_of_somebody_else_is_not_overwritten(bench: Bench, came: Path) -> None:
    bench.add_patch("a", (GATES, "gate 5\n", "gate five\n"))
    write(bench.series / "x.patch", "mine\n")
    assert [f.name for f in refused(bench, write(came / "x.patch", BARE))] == ["target-exists"]


def test_wrong_command_lines(bench: Bench, came: Path) -> None:
    two = [write(came / f"{n}.patch", BARE) for n in "ab"]
    for paths, options in (
        ([], {}),
        (two, {"name": "x"}),
        ([came, two[0]], {}),
        ([two[0]], {"name": "a b"}),
    ):
        with pytest.raises(UsageFault):
            put(bench, *paths, **options)
    assert [f.name for f in refused(bench, came.parent)] == ["missing-patch"]


def test_what_git_format_patch_writes_comes_in_and_goes_out_with_git_am(
    bench: Bench, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    shutil.copytree(bench.source, repo)

    def git(*args: str) -> bytes:
        who = ["-c", "user.name=Ann Other", "-c", "user.email=ann@example.org"]
        done = subprocess.run(["git", *who, *args], cwd=repo, capture_output=True, check=True)
        return done.stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    (repo / "name with blank.txt").write_text("x\n")
    git("mv", GATES, "engine/doors.py")
    (repo / LANES).write_text((repo / LANES).read_text().replace("line 5\n", "line five\n"))
    git("add", ".")
    git("commit", "-qm", "Change [ci] things\n\nWhy: [/x] of course.")
    tree = git("rev-parse", "HEAD^{tree}")
    git("format-patch", "-q", "-1", "-o", str(tmp_path / "out"))
    put(bench, tmp_path / "out")
    assert bench.check() == []
    git("reset", "-q", "--hard", "HEAD~1")
    (patch,) = bench.series.glob("*.patch")
    git("am", "-q", "--keep-cr", str(patch))
    assert git("rev-parse", "HEAD^{tree}") == tree
    assert git("log", "-1", "--format=%an|%s|%b").decode().strip() == (
        "Ann Other|Change [ci] things|Why: [/x] of course."
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("0001-Fix-it.patch", "Fix-it.patch"),
        ("v2-0012-fix.patch", "fix.patch"),
        ("a b (1).diff", "a-b-1.patch"),
        ("12.patch", "12.patch"),
        ("x.eml", "x.patch"),
        ("é#[ci].patch", "ci.patch"),
        ("....patch", "patch.patch"),
        ("fix.patch.txt", "fix.patch"),
    ],
)
def test_names_of_files(path: str, name: str) -> None:
    assert from_file(path) == name


def test_names_of_subjects() -> None:
    assert from_subject("[Bugfix] Don't `lose` the Lane!") == "bugfix-don-t-lose-the-lane.patch"
    assert from_subject("ÄÖ") == "patch.patch"
    assert len(from_subject("word " * 40)) <= 66
