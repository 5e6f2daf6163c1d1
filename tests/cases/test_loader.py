"""The cases themselves: whole, as they were written, and the same in memory and on disk."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cases.loader import Case, load_cases, pending, snapshot, tree_snapshot, verify

MEASURED = {"git": "2.39", "patch": "2.7.6"}
"""The versions that the [referee] lines were measured with."""


def test_all_two_hundred_cases_are_here() -> None:
    cases = load_cases()
    assert len(cases) == 200
    assert len({c.name for c in cases}) == 200
    assert {c.verdict for c in cases} == verify().VERDICTS
    assert not [key for c in cases for key in set(c.expect) - verify().KEYS]


def test_the_checkout_kept_every_line_end() -> None:
    cases = {c.name: c for c in load_cases()}
    assert b"0001-reserve.patch\r\n" in (cases["series-crlf"].folder / "series").read_bytes()
    [(_, data)] = cases["crlf-file-patch-all-crlf"].patch_files()
    assert data.count(b"\r\n") == data.count(b"\n")
    [(_, data)] = cases["patch-without-final-newline"].patch_files()
    assert not data.endswith(b"\n")
    attributes = (cases["plain"].folder.parent / ".gitattributes").read_text()
    assert "* -text" in attributes


def test_pending_cases_are_those_that_need_an_installed_target_or_a_permission() -> None:
    assert set(pending()) == {
        *(c.name for c in load_cases() if c.expect.get("target") == "installed"),
        *("fuzz-allowed-by-name", "fuzz-three-wrong-block", "crlf-allowed-by-name"),
    }


@pytest.mark.parametrize("case", load_cases(), ids=lambda c: c.name)
def test_a_base_in_memory_is_the_base_on_disk(case: Case, tmp_path: Path) -> None:
    assert tree_snapshot(case.tree()) == snapshot(case.lay_out(tmp_path / "base"))


def test_large_cases_are_generated_once_and_the_same_each_time() -> None:
    [case] = [c for c in load_cases() if c.name == "huge-line"]
    assert case.source is case.source
    [(name, data)] = case.patch_files()
    assert (name, len(data)) == ("input.patch", 4_000_109)


def measured_here() -> bool:
    for tool, version in MEASURED.items():
        if not shutil.which(tool):
            return False
        said = subprocess.run([tool, "--version"], capture_output=True, check=True).stdout.decode()
        if not re.search(rf"\b{re.escape(version)}\b", said.partition("\n")[0]):
            return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not measured_here(), reason="other versions of git and patch than measured")
def test_every_case_is_proven_by_its_referees(capsys: pytest.CaptureFixture[str]) -> None:
    code = verify().main([])
    said = capsys.readouterr().out
    assert code == 0, "\n".join(line for line in said.splitlines() if not line.startswith("ok"))
