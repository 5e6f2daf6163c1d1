"""What a message says to type can be typed where the person is, and does what it says."""

from __future__ import annotations

import errno
import importlib
import os
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest

from patchkit.cli.hints import WHERE_TO
from patchkit.cli.verbs import VERBS
from tests.unit.cli.desk import AUTHOR, LANES, Desk


def hint(text: str, words: str) -> list[str]:
    """The command behind "next:" that contains `words`, as arguments."""
    for line in text.splitlines():
        found = re.match(r"\s*(?:next|--fix):?\s+patchkit (.*)", line)
        if found and words in found[1]:
            return re.split(r" \(|, ", found[1])[0].split()
    raise AssertionError(f"no hint with {words!r} in:\n{text}")


def numbers_wrong(data: bytes) -> bytes:
    return data.replace(b"@@ -3,7 +3,7 @@", b"@@ -3,7 +4,7 @@")


def crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("broken", [numbers_wrong, crlf], ids=lambda f: f.__name__)
def test_lint_s_hint_mends_a_patch_of_the_series(begun: Desk, broken: object) -> None:
    at = begun.at / "series/base/five.patch"
    good = at.read_bytes()
    at.write_bytes(broken(good))  # type: ignore[operator]
    done = begun.run("lint", code=1)
    assert "series/base/five.patch:" in done.out
    begun.run(*hint(done.out, "refresh"))
    assert at.read_bytes() == good
    assert "1 patch(es): 1 note(s)" in begun.run("lint").out


def test_check_and_lint_say_the_same_of_crlf(begun: Desk) -> None:
    at = begun.at / "series/base/five.patch"
    at.write_bytes(crlf(at.read_bytes()))
    done = begun.run("check", code=1)
    assert "Patchkit-Allow" not in done.text
    assert hint(done.err, "refresh") == hint(begun.run("lint", code=1).out, "refresh")


def test_lint_s_hint_about_a_loose_file_names_the_file(begun: Desk) -> None:
    at = begun.at.parent / "six.patch"
    text = "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n"
    at.write_bytes(crlf((text + " line 19\n-line 20\n+line XX\n line 21\n").encode()))
    done = begun.run("lint", "../six.patch", code=1)
    command = hint(done.out, "import")
    assert command == ["import", "../six.patch"]
    begun.run(*command, "--author", AUTHOR)
    begun.run("check")


def test_a_stray_file_is_named_by_its_path_in_every_verb(begun: Desk) -> None:
    stray = begun.at / "series/base/stray.patch"
    stray.write_bytes((begun.at / "series/base/five.patch").read_bytes())
    for verb in (("lint",), ("list",), ("check",)):
        code = 1 if verb == ("lint",) else 0
        command = hint(begun.run(*verb, code=code).text, "import")
        assert command == ["import", "series/base/stray.patch"]


def test_with_several_pins_the_hint_names_the_pin(begun: Desk) -> None:
    pins = begun.at / "pins.toml"
    pins.write_text(pins.read_text() + '\n[pins.other]\nupstream = "engine"\n')
    begun.run("import", "series/base/five.patch", "--pin", "other")
    at = begun.at / "series/base/five.patch"
    at.write_bytes(crlf(at.read_bytes()))
    done = begun.run("lint", code=1)
    assert hint(done.out, "refresh") == ["refresh", "five.patch", "--pin", "base"]
    begun.run(*hint(done.out, "refresh"))
    begun.run("check")


def test_a_patch_whose_line_was_added_by_hand_can_be_refreshed(begun: Desk) -> None:
    """The series file was locked without it, which must not lead in a circle."""
    text = "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n"
    text += " line 19\n-line 20\n+line XX\n line 21\n"
    (begun.at / "series/base/six.patch").write_bytes(crlf(text.encode()))
    series = begun.at / "series/base/series"
    old = series.read_text()
    series.write_text(old + "six.patch\n")
    done = begun.run("check", code=1)
    begun.run(*hint(done.err, "refresh six"), "--check")
    begun.run(*hint(done.err, "refresh six"))
    begun.run("check")
    # What else was changed in the series file is still not locked unseen.
    series.write_text(series.read_text().replace("five.patch", "five.patch #+fast") + "x.patch\n")
    (begun.at / "series/base/x.patch").write_text(
        text.replace("20", "30").replace("19", "29").replace("21", "31")
    )
    assert "series-edited" in begun.run("refresh", "x", code=1).err


def test_move_and_the_others_show_what_became_of_the_patches(begun: Desk) -> None:
    begun.patch("six", "line 20\n", "line XX\n")
    done = begun.run("move", "six", "--first")
    assert re.search(r"base: 2 patches", done.out)
    assert re.search(r"six\.patch .*now 1 of 2", done.out)
    assert re.search(r"five\.patch .*now 2 of 2", done.out)
    body = begun.json("move", "six", "--after", "five")
    assert [row["patch"] for row in body["patches"]] == ["five.patch", "six.patch"]
    assert re.search(r"five\.patch +dropped", begun.run("drop", "five").out)
    assert re.search(r"sixth\.patch .*was six", begun.run("rename", "six", "sixth").out)
    assert LANES in begun.run("show", "sixth").out


def test_a_renamed_patch_takes_its_open_work_tree_along(begun: Desk) -> None:
    begun.run("edit", "five")
    begun.change(LANES, "line five\n", "line V\n")
    assert "build/edit-base is for vee.patch now" in begun.run("rename", "five", "vee").out
    assert re.search(r"vee\.patch +refreshed", begun.run("refresh", "vee").out)
    assert (begun.at / "series/base/series").read_text().splitlines()[-1] == "vee.patch"
    begun.run("check")


def test_the_command_that_settles_an_import_keeps_what_was_typed(desk: Desk) -> None:
    twice = desk.at.parent / "upstream/engine/twice.py"
    twice.write_text("0\nsame\nsame\n1\n2\n3\nsame\nsame\n")
    desk.run("init", "--upstream", "engine", "--source", "../upstream")
    desk.patch("five", "line 5\n", "line five\n")
    (desk.at.parent / "a.patch").write_text(
        "--- a/engine/twice.py\n+++ b/engine/twice.py\n@@ -4,2 +4,3 @@\n same\n+new\n same\n"
    )
    typed = ["import", "../a.patch", "--name", "lanes", "--first", "--date", "2031-01-31"]
    done = desk.run(*typed, "--author", "A <a@example.org>", code=1)
    (line,) = [x for x in done.err.splitlines() if "--accept" in x]
    words = shlex.split(line.partition("patchkit ")[2])
    assert words[:2] == ["import", "../a.patch"]
    desk.run(*words)
    assert (desk.at / "series/base/series").read_text().endswith("lanes.patch\nfive.patch\n")
    header = (desk.at / "series/base/lanes.patch").read_text()
    assert "From: A <a@example.org>" in header
    assert "Last-Update: 2031-01-31" in header


def test_an_accepted_place_that_no_hunk_goes_to_is_said_by_apply_too(desk: Desk) -> None:
    (desk.at / "x.py").write_text("0\nsame\nsame\n1\n")
    (desk.at / "x.patch").write_text(
        "--- a/x.py\n+++ b/x.py\n@@ -2,2 +2,3 @@\n same\n+new\n same\n"
    )
    desk.run("apply", "x.patch", "--to", ".", "--check", "--accept", "x.py:2")
    done = desk.run("apply", "x.patch", "--to", ".", "--accept", "x.py:4")
    assert "--accept x.py:4 is not used" in done.err


def test_where_the_pin_is_missing_the_whole_command_is_named(begun: Desk) -> None:
    pins = begun.at / "pins.toml"
    pins.write_text(pins.read_text() + '\n[pins.other]\nupstream = "engine"\n')
    begun.run("import", "series/base/five.patch", "--pin", "other", "--author", AUTHOR)
    for typed in (["graph"], ["show", "five"], ["export", "-o", "a folder"]):
        done = begun.run(*typed, code=2)
        (line,) = [x for x in done.err.splitlines() if x.startswith("  next:")]
        words = shlex.split(line.partition("patchkit ")[2])
        assert words == [*typed, "--pin", "base"]
        begun.run(*words)


def test_an_author_whom_nobody_knows_is_asked_for(desk: Desk) -> None:
    desk.run("init", "--upstream", "engine", "--source", "../upstream")
    text = "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n"
    (desk.at / "x.patch").write_text(text + " line 19\n-line 20\n+line XX\n line 21\n")
    for typed in (["import", "x.patch"], ["new", "six"]):
        done = desk.run(*typed, code=2)
        assert "nobody is known as the author" in done.err
        assert f'patchkit {" ".join(typed)} --author "Name <mail>", or git config' in done.err
    desk.run("import", "x.patch", "--author", AUTHOR)
    assert f"From: {AUTHOR}\n" in (desk.at / "series/base/x.patch").read_text()


OUTPUT = {"-o", "--to", "--out", "--output"}


def test_each_verb_that_can_write_elsewhere_is_known_by_the_option_that_says_so() -> None:
    found = {}
    for name in VERBS:
        hints = importlib.import_module(f"patchkit.cli.{name}").run.__annotations__
        module = vars(importlib.import_module(f"patchkit.cli.{name}"))
        options = [eval(text, module) for text in hints.values()]
        for kind in options:
            for said in get_args(kind)[1:]:
                # typer takes the first for a default, until it knows that it is Annotated.
                words = {getattr(said, "default", ""), *(getattr(said, "param_decls", None) or ())}
                if words & OUTPUT:
                    found[name.rstrip("_")] = words
    assert set(found) == set(WHERE_TO)
    assert all(WHERE_TO[verb].split()[0] in found[verb] for verb in WHERE_TO)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (["report", "-o", "../out"], ", or name another with --to DIR"),
        (["bundle", "-o", "../out/b.pyz"], ", or name another with --output FILE"),
        (["export", "-o", "../out"], ", or name another with --to DIR"),
        (["lock"], ""),
    ],
)
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_where_a_folder_cannot_be_written_the_verb_s_own_option_is_named(
    begun: Desk, monkeypatch: pytest.MonkeyPatch, typed: list[str], wanted: str, number: int
) -> None:
    real = os.rename

    def refuses(old: Any, new: Any, **more: Any) -> None:
        if "the-cache" not in os.fsdecode(new):
            raise OSError(number, os.strerror(number), new)
        real(old, new, **more)

    (begun.at.parent / "out").mkdir()
    if typed == ["lock"]:
        (begun.at / "series/base/series.lock").unlink()
    monkeypatch.setattr(os, "rename", refuses)
    done = begun.run(*typed, code=3)
    assert f"run as who may write that folder{wanted}\n" in done.err


def test_where_the_cache_cannot_be_written_its_variable_is_named(
    begun: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuses(path: Any, *rest: Any, **more: Any) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "a new one"))
    monkeypatch.setattr(os, "mkdir", refuses)
    done = begun.run("apply", code=3)
    assert "may write that folder, or name another with PATCHKIT_CACHE=DIR\n" in done.err
