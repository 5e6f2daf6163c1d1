"""import: files of a patch are left out, and a patch comes through a pipe."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.errors import UsageFault
from patchkit.series.header import parse_header
from tests.unit.authoring.importing import (
    BARE,
    HOW,
    LANES,
    MAIL,
    put,
    refused,
    said,
    write,
)
from tests.unit.authoring.making import Bench

TESTS = """\
diff --git a/tests/test_lanes.py b/tests/test_lanes.py
--- a/tests/test_lanes.py
+++ b/tests/test_lanes.py
@@ -1,2 +1,2 @@
 import engine
-assert True
+assert engine
"""


def test_files_of_a_patch_are_left_out_and_its_text_says_so(bench: Bench, came: Path) -> None:
    path = write(came / "x.diff", TESTS + f"diff --git a/{LANES} b/{LANES}\n{BARE}")
    assert "missing-target" in {f.name for f in refused(bench, path)}
    ready = put(bench, path, how=replace(HOW, exclude=("tests/*",)))
    assert "left out: tests/test_lanes.py" in said(ready, "x.patch")
    text = bench.patches()["x.patch"]
    assert parse_header(text).body == "Left out: tests/test_lanes.py."
    assert text.count(b"diff --git") == 1
    assert bench.check() == []


def test_an_exclude_that_fits_nothing_or_everything_is_told(bench: Bench, came: Path) -> None:
    path = write(came / "x.diff", BARE)
    with pytest.raises(UsageFault) as fault:
        put(bench, path, how=replace(HOW, exclude=("docs/*",)))
    (finding,) = fault.value.findings
    assert "--exclude docs/* matches no file" in finding.message
    assert "engine/lanes.py" in finding.expected
    (finding,) = refused(bench, path, how=replace(HOW, exclude=("engine/*",)))
    assert finding.name == "no-op"
    assert bench.patches() == {}


def test_of_several_mails_one_of_which_nothing_is_left_goes(bench: Bench, came: Path) -> None:
    tests = MAIL.partition("diff --git")[0].replace("Name line five", "Test it") + TESTS
    path = write(came / "pr.patch", MAIL + tests)
    ready = put(bench, path, how=replace(HOW, exclude=("tests/*",)))
    assert list(bench.patches()) == ["bugfix-core-name-line-five.patch"]
    assert "all of bugfix-core-test-it.patch is left out" in ready.findings[0].message
    assert bench.check() == []


class Pipe:
    """Standard input that holds these bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def test_a_mail_comes_through_a_pipe_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Pipe(MAIL.encode()))
    put(bench, "-")
    assert list(bench.patches()) == ["bugfix-core-name-line-five.patch"]
    assert bench.check() == []


def test_a_bare_diff_in_a_pipe_needs_a_name(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Pipe(BARE.encode()))
    with pytest.raises(UsageFault, match="called nothing"):
        put(bench, "-")
    monkeypatch.setattr("sys.stdin", Pipe(BARE.encode()))
    put(bench, "-", name="five")
    assert list(bench.patches()) == ["five.patch"]


def test_an_empty_pipe_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Pipe(b"\n"))
    with pytest.raises(UsageFault, match="nothing came from standard input"):
        put(bench, "-", name="five")
