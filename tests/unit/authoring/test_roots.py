"""import: which of several files of one name is meant is found out, or asked; never guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.authoring.importing import How
from tests.unit.authoring.importing import BARE, HOW, put, refused
from tests.unit.authoring.making import AUTHOR, Bench, make_bench

TEXT = "".join(f"line {n}\n" for n in range(40))
OTHER = "".join(f"lane {n}\n" for n in range(40))
SHORT = BARE.replace("engine/lanes.py", "lanes.py")


def made(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> Bench:
    monkeypatch.setenv("PATCHKIT_CACHE", os.fspath(cache))
    return make_bench(tmp_path, {path.replace("__", "/") + ".py": t for path, t in files.items()})


def patch(tmp_path: Path, text: str = SHORT) -> Path:
    at = tmp_path / "x.patch"
    at.write_text(text)
    return at


def test_the_exact_root_is_taken_not_the_first_by_its_name(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(tmp_path, cache, monkeypatch, a__lanes=OTHER, m__lanes="x\n" + TEXT, z__lanes=TEXT)
    put(bench, patch(tmp_path))
    assert b"+++ b/z/lanes.py\n@@ -3,7 +3,7 @@" in bench.patches()["x.patch"]
    assert bench.check() == []


def test_of_equally_good_roots_none_is_taken_and_the_option_is_named(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(tmp_path, cache, monkeypatch, a__lanes=TEXT, b__lanes=TEXT)
    at = patch(tmp_path)
    (finding,) = refused(bench, at)
    assert finding.name == "ambiguous"
    assert "equally well at 2 roots" in finding.message
    assert finding.found == "--directory a, and with the same right b/lanes.py"
    assert finding.next == f"patchkit import {at} --directory a or --directory b"
    put(bench, at, how=How(author=AUTHOR, directory="b"))
    assert b"+++ b/b/lanes.py" in bench.patches()["x.patch"]
    # The same file once more: it is in one of the two already, and not put into the other.
    assert refused(bench, at, name="y")[0].name == "ambiguous"


def test_a_root_that_fits_as_well_as_what_the_names_say_is_noted(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(tmp_path, cache, monkeypatch, engine__lanes=TEXT, w__engine__lanes=TEXT)
    (note,) = put(bench, patch(tmp_path, BARE)).findings
    assert note.note
    assert "also fits at another root: w/engine/lanes.py" in note.message
    assert "--directory w" in note.next
    assert b"+++ b/engine/lanes.py" in bench.patches()["x.patch"]


def test_an_offset_as_git_reads_it_against_an_exact_fit_elsewhere_is_asked(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(tmp_path, cache, monkeypatch, engine__lanes="x\n" + TEXT, w__engine__lanes=TEXT)
    at = patch(tmp_path, BARE)
    (finding,) = refused(bench, at)
    assert (finding.name, finding.note) == ("ambiguous", False)
    assert f"patchkit import {at} --directory w" in finding.next
    assert f"patchkit import {at} -p 1" in finding.next
    put(bench, at, how=How(author=AUTHOR, directory="w"))
    put(bench, at, how=How(author=AUTHOR, strip=1), name="y")
    assert b"+++ b/w/engine/lanes.py" in bench.patches()["x.patch"]
    assert b"+++ b/engine/lanes.py\n@@ -4,7 +4,7 @@" in bench.patches()["y.patch"]


def test_a_refusal_says_where_it_would_fit(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(tmp_path, cache, monkeypatch, engine__lanes=OTHER, w__engine__lanes=TEXT)
    findings = refused(bench, patch(tmp_path, BARE), how=HOW)
    assert [f.note for f in findings] == [False, True]
    assert "fits exactly at another root: w/engine/lanes.py" in findings[1].message
    assert "--directory w" in findings[1].next
