"""One rule for what the command line names: what is not there is a wrong command line (2); what is
there and cannot be read is the environment (3); what is read and does not hold is refused (1)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.desk import Desk

PATCH = "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n line 19\n-line 20\n+x\n"

NAMES_A_PIN = [
    "list --pin @",
    "show five --pin @",
    "check --pin @",
    "check --tree . --pin @",
    "fetch --pin @",
    "lock --pin @",
    "apply --pin @",
    "graph --pin @",
    "export --to out --pin @",
    "bundle --pin @",
    "build --pin @",
    "prove --pin @",
    "drift --pin @",
    "diff --series base @",
    "new x --pin @",
    "edit --pin @",
    "refresh five --pin @",
    "import series/base/five.patch --pin @",
    "lint --pin @",
    "rename five x --pin @",
    "move five --first --pin @",
    "drop five --pin @",
    "rebase --pin @ --onto base",
    "rebase --onto @",
    "pin @ --complete",
]
NAMES_A_STACK = [
    "list --stack @",
    "check --stack @",
    "check --tree . --stack @",
    "apply --pin base --stack @",
    "export --to out --stack @",
    "bundle --stack @",
    "build --stack @",
]
NAMES_A_PATCH = [
    "show @",
    "edit @",
    "drop @",
    "lint @",
    "refresh @",
    "prove @",
    "rename @ x",
    "move @ --first",
    "move five --after @",
    "new x --after @",
    "import pins.toml --after @",
    "apply --pin base --tree-only --upto @",
]
NAMES_A_SOURCE = [
    "check --source @",
    "apply --pin base --tree-only --source @",
    "lock --source @",
    "new x --source @",
    "init other --upstream x --source @",
]
NAMES_A_PATH = [
    "import @",
    "apply @ --to .",
    "apply series/base/five.patch --to @",
    "apply --series @ --to .",
    "revert --to @",
    "check --tree @",
    "check --installed --site @",
    "apply series/base/five.patch --installed --site @",
    "revert --installed --site @",
    "lint @",
    "refresh --tree @",
    "-C @ list",
    "-C @ check",
]


@pytest.mark.parametrize(
    "line", [*NAMES_A_PIN, *NAMES_A_STACK, *NAMES_A_PATCH, *NAMES_A_SOURCE, *NAMES_A_PATH]
)
def test_a_name_that_is_not_there_is_a_wrong_command_line(
    begun: Desk, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "a@b.c")
    before = begun.bytes()
    done = begun.run(*line.replace("@", "no-such").split(), code=2)
    assert "no-such" in done.err
    assert "next:" in done.err or "--help" in done.err or "-h" in done.err
    assert begun.bytes() == before


def fifo(at: Path) -> None:
    os.mkfifo(at)


def unix_socket(at: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        old = os.getcwd()
        os.chdir(at.parent)
        one.bind(at.name)
        os.chdir(old)


def folder_name(at: Path) -> None:
    (at / "inside").mkdir(parents=True)


def dangling(at: Path) -> None:
    at.symlink_to("nowhere")


def device(at: Path) -> None:
    at.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, unix_socket, dangling, device])
@pytest.mark.parametrize("line", ["import @", "apply @ --to .", "lint @"])
def test_what_is_no_file_is_refused_by_name_and_not_waited_for(
    begun: Desk, line: str, make: Callable[[Path], None]
) -> None:
    make(begun.at / "odd")
    done = begun.run(*line.replace("@", "odd").split(), code=2)
    kind = {fifo: "a FIFO", unix_socket: "a socket", device: "a device"}
    assert kind.get(make, "") in done.err
    assert "odd" in done.err


def test_a_folder_is_no_patch_file(begun: Desk) -> None:
    folder_name(begun.at / "odd")
    assert "a folder" in begun.run("apply", "odd", "--to", ".", code=2).err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_the_environment(begun: Desk) -> None:
    at = begun.at / "x.patch"
    at.write_text(PATCH)
    at.chmod(0)
    for line in (["import", "x.patch"], ["apply", "x.patch", "--to", "."], ["lint", "x.patch"]):
        assert "Permission denied" in begun.run(*line, code=3).err


def test_what_is_read_and_does_not_hold_is_refused(begun: Desk) -> None:
    (begun.at / "x.patch").write_text("no diff at all\n")
    for line in ("import x.patch", "apply x.patch --to .", "lint x.patch"):
        begun.run(*line.split(), code=1)
