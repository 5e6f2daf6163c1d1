"""Files of a project that are no files, or hold what nobody writes: named, never waited for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.conftest import Yard

SERIES = "series/base"
VERBS = ["check", "list", "lint", "lock --check", "show five", "doctor", "apply --tree-only"]
DEEP = "[" * 100_000
TEXTS = {
    f"{SERIES}/series.lock": [DEEP, '{"format": ' + "9" * 5000 + "}", '{"a":' * 50_000, "\0"],
    f"{SERIES}/five.patch": ["+" + "x" * 3_000_000, "\0" * 1000, "From: \x80\n" * 9],
    f"{SERIES}/series": ["x" * 70_000, "\0", "five.patch" + " -p1" * 9999],
    f"{SERIES}/proofs/results/five.json": [DEEP, "{}", "9" * 5000],
    f"{SERIES}/proofs/test_five.py": ["(" * 5000, "\0", "x = " + "9" * 5000],
    "pins.toml": [f"x = {DEEP}", "x = " + "9" * 5000, "\0", f"x.{'y.' * 5000}z = 1"],
    ".patchkit/rebase.json": [DEEP, "9" * 5000],
    ".patchkit/journal/journal.json": [DEEP, "{}"],
    f"{SERIES}/proofs/five.unproven": ["\udcff: x"],
}


def quiet(yard: Yard, *verbs: str) -> None:
    for verb in verbs:
        done = yard.run(*verb.split())
        assert done.code in (0, 1, 2, 3)
        assert "fault of patchkit" not in done.text, f"{verb}\n{done.text}"


@pytest.mark.parametrize("name", TEXTS)
def test_what_nobody_writes(yard: Yard, name: str) -> None:
    for text in TEXTS[name]:
        yard.file(f"mine/{name}", text.encode("utf-8", "surrogateescape"))
        quiet(yard, *VERBS, "rebase status")
    if name.endswith("five.json"):
        yard.file(f"mine/{name}", DEEP)
        quiet(yard, "report -o ../site")


@pytest.mark.parametrize("name", [*TEXTS, ".patchkit", SERIES])
def test_what_is_no_file(yard: Yard, name: str) -> None:
    at = yard.at / name
    at.parent.mkdir(parents=True, exist_ok=True)
    for kind in ("fifo", "folder", "link"):
        _gone(at)
        if kind == "fifo":
            os.mkfifo(at)
        elif kind == "folder":
            at.mkdir()
        else:
            at.symlink_to("nowhere")
        quiet(yard, *VERBS, "rebase status")


def _gone(at: Path) -> None:
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)
