"""Output that nobody reads, that does not fit, or that is closed; and JSON in every case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.cli.desk import Desk

PINS = '[upstreams.e]\nkind = "plain"\nsource = "../e"\n\n'


@pytest.fixture
def many(tmp_path: Path) -> SmallProject:
    """A project whose list is longer than a pipe holds."""
    at = tmp_path / "p"
    at.mkdir()
    (tmp_path / "e").mkdir()
    names = [f"pin-{n}-{'x' * 80}" for n in range(1500)]
    (at / "pins.toml").write_text(PINS + "".join(f'[pins."{n}"]\nupstream = "e"\n' for n in names))
    return SmallProject(at, tmp_path / "e")


def shell(at: Path, text: str) -> tuple[list[int], str]:
    """The exit codes of a pipe's commands, and what came on standard error. $P is patchkit."""
    script = f'set +e; P="{sys.executable} -m patchkit"; {text}; echo "${{PIPESTATUS[@]}}" >&3'
    codes, other = os.pipe()
    done = subprocess.run(
        ["bash", "-c", f"exec 3>&{other}; {script}"],
        cwd=at,
        pass_fds=[other],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(other)
    with os.fdopen(codes) as stream:
        return [int(code) for code in stream.read().split()], done.stderr


def test_a_reader_that_has_gone_changes_neither_words_nor_exit_code(many: SmallProject) -> None:
    assert shell(many.at, "$P list | head -c 1") == ([0, 0], "")
    assert shell(many.at, "$P list --json | head -c 1") == ([0, 0], "")
    assert shell(many.at, "$P --help | true") == ([0, 0], "")
    codes, words = shell(many.at, "$P show nothing --json | true")
    assert codes == [2, 0]
    assert words == ""
    # The findings' reader has gone, and the code is all that is left.
    assert shell(many.at, "$P -C / list 2> >(true)")[0] == [1]


@pytest.mark.parametrize("args", ["list", "list --json", "--help", "--version", "show x --json"])
def test_a_full_standard_output_is_the_environments_fault(many: SmallProject, args: str) -> None:
    codes, words = shell(many.at, f"$P {args} > /dev/full")
    assert codes == [3]
    assert words.startswith("error: disk: cannot write standard output: No space left on device")
    assert "fault of patchkit" not in words


def test_a_closed_stream_is_nobody_and_a_full_error_stream_keeps_the_code(
    many: SmallProject,
) -> None:
    assert shell(many.at, "$P list >&-") == ([0], "")
    assert shell(many.at, "$P list 2>&- >&- <&-") == ([0], "")
    assert shell(many.at, "$P -C / list 2> /dev/full")[0] == [1]


@pytest.mark.parametrize(
    "args",
    [
        ["show"],
        ["show", "--no-such-option"],
        ["no-such-verb"],
        ["show", "x", "--raw"],
        ["import", "x", "--fuzz", "9"],
        ["move", "x"],
    ],
)
def test_a_wrong_command_line_is_one_json_object_too(desk: Desk, args: list[str]) -> None:
    done = desk.run(*args, "--json", code=2)
    body = json.loads(done.out)
    assert done.err == ""
    assert (body["exit"], body["ok"], body["verb"]) == (2, False, args[0])
    (finding,) = body["findings"]
    assert finding["name"] == "usage"
    assert finding["message"]


def test_the_verb_in_json_is_the_word_after_the_folder(desk: Desk) -> None:
    done = desk.run("-C", ".", "list", "--json", code=1)
    assert json.loads(done.out)["verb"] == "list"
