"""apply, revert and check of a tree: what is said is what was done, and a way out is named."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.desk import Desk

PATCH = (
    "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n"
    " line 19\n-line 20\n+line XX\n line 21\n"
)
WRONG = PATCH.replace("line 20", "line 99")


@pytest.fixture
def loose(desk: Desk) -> Desk:
    """A folder `d` to patch, and two patches."""
    at = desk.at / "d" / "engine"
    at.mkdir(parents=True)
    (at / "lanes.py").write_text("".join(f"line {n}\n" for n in range(40)))
    (desk.at / "x.patch").write_text(PATCH)
    (desk.at / "wrong.patch").write_text(WRONG.replace("-20,3 +20,3", "-1,3 +1,3"))
    return desk


def states(text: str) -> list[str]:
    words = "would apply|not written|already-applied|applied|refused"
    return re.findall(rf"^\S+\.patch .*?\b({words})\b", text, re.MULTILINE)


def test_only_a_run_that_wrote_says_applied(loose: Desk) -> None:
    assert states(loose.run("apply", "x.patch", "--to", "d", "--check").out) == ["would apply"]
    done = loose.run("apply", "x.patch", "wrong.patch", "--to", "d", code=1)
    assert states(done.out) == ["not written", "refused"]
    assert states(loose.run("apply", "x.patch", "--to", "d").out) == ["applied"]
    assert states(loose.run("apply", "x.patch", "--to", "d").out) == ["already-applied"]


def test_of_a_loose_patch_no_note_says_refresh(loose: Desk) -> None:
    off = PATCH.replace("-20,3 +20,3", "-15,3 +15,3")
    (loose.at / "off.patch").write_text(off)
    done = loose.run("apply", "off.patch", "--to", "d", "--check")
    assert "note: offset" in done.err
    assert "patchkit refresh off.patch" not in done.err
    assert "make the diff anew" in done.err


def told(body: dict[str, Any]) -> list[str]:
    return [row["state"] for row in body["patches"]]


def test_json_says_what_the_table_says(loose: Desk) -> None:
    assert told(loose.json("apply", "x.patch", "--to", "d", "--check")) == ["would apply"]
    body = loose.json("apply", "x.patch", "wrong.patch", "--to", "d", code=1)
    assert told(body) == ["not written", "refused"]
    assert told(loose.json("apply", "x.patch", "--to", "d")) == ["applied"]
    assert told(loose.json("apply", "x.patch", "--to", "d")) == ["already-applied"]


def test_so_does_the_json_of_a_pin_s_series(begun: Desk) -> None:
    apply = ("apply", "--pin", "base", "--to", "out")
    assert told(begun.json(*apply, "--check")) == ["would apply"]
    (begun.at / "out").mkdir()
    (begun.at / "out" / "mine").write_text("")
    assert told(begun.json(*apply, "--check", code=1)) == ["not written"]
    (begun.at / "out" / "mine").unlink()
    assert told(begun.json(*apply)) == ["applied"]


def test_so_it_is_with_a_pin_s_series(begun: Desk) -> None:
    apply = ("apply", "--pin", "base", "--to", "out")
    assert states(begun.run(*apply, "--check").out) == ["would apply"]
    (begun.at / "out").mkdir()
    (begun.at / "out" / "mine").write_text("")
    assert states(begun.run(*apply, code=1).out) == ["not written"]
    assert states(begun.run(*apply, "--check", code=1).out) == ["not written"]
    (begun.at / "out" / "mine").unlink()
    assert states(begun.run(*apply).out) == ["applied"]


def test_no_lock_file_stays_beside_a_work_tree(begun: Desk) -> None:
    begun.run("apply", "--pin", "base", "--to", "deep/out")
    begun.run("apply", "--pin", "base", "--to", "deep/out")
    assert os.listdir(begun.at / "deep") == ["out"]
    assert os.listdir(begun.at / "build") == ["edit-base"]


def test_a_file_that_was_put_back_by_hand_is_taken_back_too(loose: Desk) -> None:
    at = loose.at / "d/engine/lanes.py"
    good = at.read_bytes()
    loose.run("apply", "x.patch", "--to", "d")
    at.write_bytes(good)
    done = loose.run("apply", "x.patch", "--to", "d", code=1)
    assert "but as it was before the patches" in done.err
    assert f"patchkit revert --to {loose.at / 'd'}" in done.err
    assert "0 file(s) put back" in loose.run("revert", "--to", "d").out
    assert at.read_bytes() == good
    assert not (loose.at / "d/.patchkit").exists()
    loose.run("apply", "x.patch", "--to", "d")
    at.write_bytes(good + b"mine\n")
    assert "before them" in loose.run("revert", "--to", "d", code=1).err
    assert at.read_bytes() == good + b"mine\n"


def test_revert_names_the_folder_by_its_whole_path(loose: Desk) -> None:
    loose.run("apply", "x.patch", "--to", "d")
    assert loose.json("revert", "--to", "d", "--check")["to"] == str(loose.at / "d")
    assert loose.json("revert", "--to", "d")["to"] == str(loose.at / "d")


BROKEN = ["", "{", "[]", "null", '{"format": 1}', '{"format": 1, "applied": [{}]}', "\udcff",
          '{"format":1,"applied":[{"patch":"x","sha256":"y","paths":{"f":["100644 zz","q"]}}]}',
          '{"format":1,"applied":[{"patch":"","sha256":"","paths":{"f":["' + "z" * 47 + '",0]}}]}',
          ]  # fmt: skip
PYTHON = re.compile(
    r"Expecting|NoneType|subscriptable|indices|codec|invalid literal|KeyError|char "
)


def all_states(text: str, at: Path) -> None:
    at.write_bytes(text.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_record_is_told_in_words(loose: Desk, text: str) -> None:
    loose.run("apply", "x.patch", "--to", "d")
    at = loose.at / "d/.patchkit/state.json"
    all_states(text, at)
    for args in (("revert", "--to", "d"), ("apply", "x.patch", "--to", "d")):
        done = loose.run(*args, code=1)
        assert done.err.startswith("error: journal: the record of what was applied cannot be read")
        assert not PYTHON.search(done.err), done.err
        assert f"remove {at}" in done.err


@pytest.mark.parametrize("text", BROKEN)
def test_so_are_a_broken_lock_and_a_broken_record_of_a_work_tree(begun: Desk, text: str) -> None:
    begun.run("apply", "--pin", "base", "--to", "out")
    for path, args in (
        ("series/base/series.lock", ("check",)),
        (".git/patchkit/edit.json", ("refresh",)),
        ("out/.git/patchkit/state.json", ("apply", "--pin", "base", "--to", "out")),
    ):
        at = begun.at / ("build/edit-base/" + path if "edit" in path else path)
        good = at.read_bytes()
        all_states(text, at)
        done = begun.run(*args, code=1)
        assert not PYTHON.search(done.err), done.err
        assert "next:" in done.err
        at.write_bytes(good)


def test_a_cache_that_is_a_file_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.at / "file").write_text("x")
    for where in ("file", "file/below/it"):
        monkeypatch.setenv("PATCHKIT_CACHE", str(desk.at / where))
        for args in (("cache",), ("init", "mine", "--upstream", "e", "--source", "../upstream")):
            done = desk.run(*args, code=3)
            assert f"{desk.at / 'file'} is no folder" in done.err
            assert "PATCHKIT_CACHE=DIR" in done.err


def test_check_of_a_tree_says_what_it_looked_at(begun: Desk) -> None:
    (begun.at.parent / "upstream/engine/gates.py").write_text("gate\n")
    begun.run("lock")
    begun.run("apply", "--pin", "base", "--to", "out")
    assert "1 path(s) that the series touches, and every other tracked file: 0 edited" in (
        begun.run("check", "--tree", "out").out
    )
    body = begun.json("check", "--tree", "out")
    assert (body["whole"], body["edited"]) == (True, [])
    (begun.at / "out/engine/gates.py").write_text("edited\n")
    done = begun.run("check", "--tree", "out")
    assert "note: foreign-edit: engine/gates.py was edited, and no patch touches it" in done.err
    assert "1 edited" in done.out
    # Committing it does not hide it.
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qam", "mine"]
    subprocess.run(git, cwd=begun.at / "out", check=True)
    assert begun.json("check", "--tree", "out")["edited"] == ["engine/gates.py"]
    plain = begun.at.parent / "upstream"
    done = begun.run("check", "--tree", str(plain), code=1)
    assert "1 path(s) that the series touches; no other file was looked at" in done.out
    assert begun.json("check", "--tree", str(plain), code=1)["whole"] is False
