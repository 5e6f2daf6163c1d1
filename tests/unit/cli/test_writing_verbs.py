"""The verbs that write patches, through the command: words, exit codes, JSON, nothing by halves."""

from __future__ import annotations

import os
import re

import pytest

from patchkit.cli import out as output
from tests.unit.cli.desk import AUTHOR, LANES, Desk


def test_from_nothing_to_a_checked_patch_in_four_commands(desk: Desk) -> None:
    assert "patchkit new NAME" in desk.run("init", "--upstream", "engine",
                                           "--source", "../upstream").out  # fmt: skip
    done = desk.run("new", "five", "--author", AUTHOR)
    assert "build/edit-base: new work tree, no patch yet" in done.out
    assert "then: patchkit refresh" in done.out
    desk.change(LANES, "line 5\n", "line five\n")
    done = desk.run("refresh")
    assert re.search(r"five\.patch +new +1 +\+1 +-1", done.out)
    assert "written together: five.patch, series, series.lock" in done.out
    assert "clean" in desk.run("check").out
    assert "nothing to write" in desk.run("refresh").out


def test_every_verb_gives_one_json_object_also_when_it_refuses(begun: Desk) -> None:
    body = begun.json("new", "six", "--author", AUTHOR)
    assert (body["verb"], body["patch"], body["new"]) == ("new", "six.patch", True)
    body = begun.json("refresh", code=1)
    assert [f["name"] for f in body["findings"]] == ["no-op"]
    begun.change(LANES, "line 26\n", "line 26.0\n")
    body = begun.json("refresh")
    assert body["patches"][1]["state"] == "new"
    assert body["written"] == [f"series/base/{n}" for n in ("series", "series.lock", "six.patch")]
    assert begun.json("edit", "five")["patch"] == "five.patch"
    assert begun.json("move", "six", "--first")["pin"] == "base"
    assert begun.json("rename", "six", "sixth")["written"]
    assert begun.json("drop", "sixth")["patches"][-1]["state"] == "dropped"
    assert begun.json("drop", "sixth", code=2)["findings"][0]["name"] == "missing-patch"
    assert begun.json("lint")["counts"]["error"] == 0
    body = begun.json("import", "nothing.patch", code=2)
    assert body["findings"][0]["name"] == "usage"
    assert begun.json("init", code=1)["findings"][0]["name"] == "target-exists"
    assert begun.json("move", "five", code=2)["findings"][0]["name"] == "usage"


def test_check_writes_nothing_and_says_what_would_be(begun: Desk) -> None:
    begun.run("edit", "five")
    begun.change(LANES, "line five\n", "line V\n")
    (begun.at.parent / "x.patch").write_text(
        "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n"
        " line 19\n-line 20\n+line XX\n line 21\n"
    )
    before = begun.bytes()
    for args in (
        ("refresh",),
        ("import", "../x.patch", "--author", "A <a@example.org>"),
        ("rename", "five", "V"),
        ("drop", "five"),
        ("move", "five", "--first"),
    ):
        done = begun.run(*args, "--check")
        assert "(--check)" in done.out or "nothing to write" in done.out
        assert begun.bytes() == before
    assert "would write" in begun.run("init", "../other", "--upstream", "engine", "--source",
                                      "../upstream", "--check").out  # fmt: skip
    assert not (begun.at.parent / "other").exists()


def test_a_breaking_refresh_says_which_hunk_and_what_to_do(begun: Desk) -> None:
    begun.patch("more", "line five\n", "line 5.0\n")
    begun.run("edit", "five")
    begun.change(LANES, "line five\n", "line V\n")
    before = begun.bytes()
    done = begun.run("refresh", code=1)
    assert (
        "error: conflict: more.patch does not fit any more: hunk 1 of engine/lanes.py" in done.err
    )
    assert "git rebase --onto HEAD start series" in done.err
    assert begun.bytes() == before


def test_after_an_edit_by_hand_a_patch_is_refreshed_by_name(begun: Desk) -> None:
    begun.patch("far", "line 30\n", "line thirty\n")
    at = begun.at / "series/base/five.patch"
    text = at.read_text()
    at.write_text(
        text.replace("@@ -3,7 +3,7 @@", "@@ -9,7 +9,7 @@").replace("+line five", "+line V")
    )
    assert "patch-edited" in begun.run("check", code=1).err
    done = begun.run("refresh", "five", "--date", "2031-02-02")
    assert "offset" in done.out
    assert "Last-Update: 2031-02-02" in at.read_text()
    assert "@@ -3,7 +3,7 @@" in at.read_text()
    begun.run("check")
    assert "nothing to write" in begun.run("refresh", "five", "far").out


def test_a_killed_command_is_said_to_be_taken_back(
    begun: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.engine.model import File
    from patchkit.files import transaction
    from patchkit.files.root import Root

    before = begun.bytes()

    class Killed(BaseException):
        pass

    def dies() -> None:
        raise Killed

    journal = begun.at / ".patchkit" / "journal"
    changes = {"series/base/five.patch": File(b"x"), "series/base/series": File(b"")}
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "recover", lambda *_: None)
        with pytest.raises(Killed):
            transaction.change(Root(begun.at), changes, journal, what="refresh", after=dies)
    assert begun.bytes() != before
    assert "an interrupted refresh was undone first" in begun.run("lint", "--fix").out
    assert begun.bytes() == before


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("new",), "NAME"),
    (("new", "x", "--after", "five", "--first"), "exclude"),
    (("new", "x", "--date", "yesterday"), "--date"),
    (("new", "a b"), "cannot be the name"),
    (("new", "x"), "--author"),
    (("new", "x", "--author", "nobody"), "author"),
    (("new", "x", "--author", AUTHOR, "--subject", "[ci] x"), "bracket"),
    (("move", "five"), "--after"),
    (("refresh", "five", "--from-commits"), "exclude"),
    (("refresh", "--tree", "."), "no work tree"),
    (("import",), "FILE"),
    (("import", "x", "--accept", "nonsense"), "FILE:LINE"),
    (("import", "series/base", "--name", "x"), "--name"),
    (("init", "new", "--upstream", "x", "--source", "nowhere"), "no such folder"),
    (("init", "new", "--upstream", "x", "--kind", "y"), "--kind plain or vllm"),
]


def test_wrong_command_lines_exit_2_and_say_what_is_right(begun: Desk) -> None:
    before = begun.bytes()
    for args, words in WRONG:
        assert words in begun.run(*args, code=2).err, args
        assert begun.bytes() == before


def test_without_a_work_tree_refresh_says_how_to_get_one(desk: Desk) -> None:
    desk.run("init", "--upstream", "engine", "--source", "../upstream")
    assert "patchkit edit PATCH or patchkit new NAME" in desk.run("refresh", code=2).err


def test_outside_a_project_every_verb_says_how_to_begin_one(desk: Desk) -> None:
    for args in (("new", "x"), ("refresh",), ("drop", "x"), ("import", "x"), ("lint",)):
        done = desk.run(*args, code=1)
        assert "not-a-project" in done.err
        assert "patchkit init" in done.err


def test_a_source_that_is_gone_is_an_environment_fault(begun: Desk) -> None:
    os.rename(begun.at.parent / "upstream", begun.at.parent / "gone")
    done = begun.run("edit", "five", code=3)
    assert 'source = "../upstream"' in done.err
    begun.run("edit", "five", "--source", "../gone")


def test_lint_names_the_line_and_mends_with_fix(begun: Desk) -> None:
    at = begun.at / "series/base/five.patch"
    good = at.read_bytes()
    at.write_bytes(b"\xef\xbb\xbf" + good + b"-- \n2.39.5\n\n")
    done = begun.run("lint", code=1)
    assert "five.patch:1: warning: byte-order-mark:" in done.out
    assert re.search(r"five\.patch:\d\d: note: signature:", done.out)
    assert "--fix takes the mark away" in done.out
    assert "patchkit lint --fix" in done.out
    assert re.search(r"five\.patch +mended", begun.run("lint", "--fix").out)
    assert at.read_bytes() == good
    begun.run("check")
    (begun.at / "series/base/stray.patch").write_bytes(good)
    assert "stray.patch: warning: unlisted" in begun.run("lint", code=1).out


def test_lint_of_loose_files_needs_no_project(desk: Desk) -> None:
    text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\ntrailing\n"
    (desk.at / "x.patch").write_text(text)
    assert "trailing-junk" in desk.run("lint", "x.patch", code=1).out
    desk.run("lint", "--fix", "x.patch", code=1)
    assert "trailing" not in (desk.at / "x.patch").read_text()
    begun = desk.run("init", "--upstream", "engine", "--source", "../upstream")
    assert begun.code == 0
    assert "no header" in desk.run("lint", "x.patch", code=1).out
    assert "neither a patch" in desk.run("lint", "y.patch", code=2).err


def test_quilt_like_edits_in_the_folder_are_taken_back(begun: Desk) -> None:
    at = begun.at / "series/base/five.patch"
    good = at.read_bytes()
    head, _, diff = good.partition(b"---\ndiff")
    hunk = diff.partition(b"@@")[2]
    at.write_bytes(
        head + b"Index: p/engine/lanes.py\n" + b"=" * 67 + b"\n--- p.orig/engine/lanes.py\n"
        b"+++ p/engine/lanes.py\n@@" + hunk
    )
    before_lock = (begun.at / "series/base/series.lock").read_bytes()
    assert "refreshed" in begun.run("import", "series/base").out
    assert at.read_bytes() == good
    assert (begun.at / "series/base/series.lock").read_bytes() == before_lock
    at.write_bytes(good.replace(b",7 +3,7", b",7 +3,8"))
    begun.run("import", "series/base/five.patch", code=1)
    begun.run("import", "--recount", "series/base/five.patch")
    assert at.read_bytes() == good


@pytest.mark.parametrize("form", ["quilt", "am"])
def test_what_export_wrote_is_imported_without_a_change(begun: Desk, form: str) -> None:
    begun.patch("six", "line 26\n", "line 26.0\n", "--guard", "fast")
    before = begun.bytes()
    begun.run("export", "--format", form, "--to", "../out")
    assert "nothing to write" in begun.run("import", "../out").out
    assert begun.bytes() == before


# -- what it looks like ----------------------------------------------------------------------
MARKUP = "Quote [ci] and [/x] and [bold red]names[/]"


@pytest.fixture
def marked(begun: Desk) -> Desk:
    (begun.at.parent / "x[ci][bold].patch").write_text(
        "--- a/engine/[ci].py\n+++ b/engine/[ci].py\n@@ -0,0 +1 @@\n+x\n"
    )
    begun.run("new", "marked", "--author", AUTHOR, "--subject", MARKUP)
    begun.change(LANES, "line 20\n", "line [20]\n")
    begun.run("refresh")
    return begun


def test_markup_in_subjects_and_paths_is_shown_as_it_is(marked: Desk) -> None:
    assert MARKUP in marked.run("list").out
    assert MARKUP in marked.run("show", "marked").out
    done = marked.run("import", "../x[ci][bold].patch", "--author", AUTHOR)
    assert "x-ci-bold.patch" in done.out
    done = marked.run("import", "../x[ci][bold].patch", "--name", "y", code=1)
    assert "[ci].py" in marked.run("show", "x-ci-bold").out
    text = marked.at.parent / "z.patch"
    text.write_text("--- a/engine/[/no].py\n+++ b/engine/[/no].py\n@@ -1 +1 @@\n-a\n+b\n")
    assert "engine/[/no].py" in marked.run("import", "../z.patch", code=1).err


def test_a_terminal_of_80_columns_reads_well(marked: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    for args in (("list",), ("refresh", "marked"), ("edit", "five"), ("lint",)):
        done = marked.run(*args)
        assert "\x1b[3" not in done.out, "a colour in spite of NO_COLOR"
        plain = re.sub(r"\x1b\[[0-9;]*m", "", done.out)
        tables = [line for line in plain.splitlines() if line and line[0] in "┏┃┡│└"]
        assert all(len(line) <= 80 for line in tables)
    folded = re.sub(r"[\s│]+", "", re.sub(r"\x1b\[[0-9;]*m", "", marked.run("list").out))
    assert re.sub(r"\s+", "", MARKUP) in folded


def test_a_pipe_gets_plain_lines(marked: Desk) -> None:
    for args in (("list",), ("edit", "five"), ("lint",), ("move", "marked", "--first")):
        done = marked.run(*args)
        assert "\x1b" not in done.text
        assert not set("┏┃│") & set(done.text)


def test_a_project_without_a_pin_names_the_command_that_makes_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.check import pinning
    from patchkit.errors import Finding, Refused

    asked: list[str] = []

    def add(project: object, store: object, wanted: pinning.Asked, bar: object) -> None:
        asked.append(wanted.name)
        raise Refused(Finding("network", "not in a test"))

    monkeypatch.setattr(pinning, "add", add)
    hints = [
        desk.run("init", "--upstream", "vllm").out,
        desk.run("init", code=1).err,
        desk.run("new", "x", code=2).err,
        desk.run("show", "x", code=2).err,
    ]
    for hint in hints:
        found = re.search(r"patchkit (pin RELEASE[^,;\n]*)", hint)
        assert found, hint
        # The command as it is named, a release put in.
        desk.run(*found[1].replace("RELEASE", "v0.30.0").split()[:3], code=1)
    assert asked == ["v0.30.0"] * 4


def test_what_was_written_is_named_as_the_series_names_it(begun: Desk) -> None:
    done = begun.run("rename", "five", "sub/five")
    assert "written together: series, series.lock, sub/five.patch; removed: five.patch" in done.out
