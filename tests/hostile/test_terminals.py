"""Control characters of a patch, a project or a repository never reach the terminal as they are."""

from __future__ import annotations

import json
import subprocess
import unicodedata
from collections.abc import Callable

import pytest

from patchkit.cli.progress import Bar
from tests.hostile.conftest import Yard, create, edit
from tests.hostile.test_repositories import ENV

ODD = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202egnp.exe\u2028\x08\r\x7f\x00"
"""Sets a title, clears the screen, turns the writing round, goes back, ends a line."""
NAME = "a\\033]0;x\\007\\302\\233\\342\\200\\256b.py"
"""The same in a path, as git quotes it."""
HEAD = (
    f"From: Eve {ODD[:-1]} <eve@example.org>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\n"
    f"Subject: title {ODD[:-3]} end\nOrigin: vendor {ODD[:5]}\nForwarded: no\n"
    f"Last-Update: 2026-11-30\n\nWhy: {ODD[:-3]}\n---\n"
)


def plain(text: str) -> None:
    """Nothing in the text does more than show a character or end a line."""
    odd = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}
    assert not odd - {"\t"}, ascii(text)


def new_file(text: str) -> str:
    """A patch that makes a file with that name, and a line of the same kind."""
    return (
        f'diff --git "a/engine/{NAME}" "b/engine/{NAME}"\nnew file mode 100644\n'
        f'--- /dev/null\n+++ "b/engine/{NAME}"\n@@ -0,0 +1 @@\n+{text}\n'
    )


def hold(yard: Yard) -> None:
    """Put a patch of that kind into the project, by hand."""
    series = yard.at / "series" / "base"
    (series / "odd.patch").write_bytes((HEAD + new_file(ODD[:-2])).encode())
    with open(series / "series", "a") as file:
        file.write("odd.patch\n")


LINES = [
    "lock",
    "check",
    "list",
    "show odd",
    "show odd --json",
    "lint",
    "lint odd",
    "graph",
    "apply",
    "apply --tree-only",
    "diff --series base base",
    "doctor",
    "edit odd",
    "import given/p1.patch",
    "export -o ../out",
    "rename odd x",
    "drop x",
]


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_headers_paths_and_lines_of_a_patch(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: terminal)
    hold(yard)
    yard.series(HEAD + edit("a/engine/lanes.py", line=9).replace("twenty", ODD[:-2]))
    for line in LINES:
        done = yard.run(*line.replace("given", str(yard.home / "given")).split())
        assert done.code in (0, 1), done.text
        plain(done.text)
        if "--json" in line:
            assert done.out.isascii()
            json.loads(done.out)


def test_raw_bytes_go_to_a_terminal_only_where_they_do_nothing_to_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(yard)
    raw = (yard.at / "series" / "base" / "odd.patch").read_bytes()
    assert yard.run("show", "odd", "--raw").out.encode() == raw
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    done = yard.run("show", "odd", "--raw")
    assert (done.code, done.out) == (2, "")
    assert "patchkit show odd.patch --raw > FILE" in done.err
    assert yard.run("show", "five", "--raw").code == 0


def test_a_bar_shows_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets are no markup, of which some would be an error, and escapes do nothing."""
    bar = Bar(quiet=False)
    bar._quiet, bar._began = False, 0.0
    bar("read a[/red][b]\x1b]0;x\x07.tar.gz", 1, 2)
    assert bar._progress is not None
    (task,) = bar._progress.tasks
    shown = str(bar._progress.columns[0].render(task))
    bar.stop()
    assert shown == "read a[/red][b]\\033]0;x\\007.tar.gz"


BROKEN: dict[str, str] = {
    "conflict": edit("a/engine/lanes.py").replace("-line 20", f"-{ODD}"),
    "missing": new_file("x").replace("/dev/null", f'"a/engine/{NAME}"').replace("new file", "old"),
    "name-of-two": edit(f"a/x{ODD[:4]}", f"b/y{ODD[:4]}"),
    "header": HEAD * 2,
    "counts": edit("a/engine/lanes.py").replace("-20,3", f"-20,3{ODD[:6]}"),
    "binary": f"Binary files a/{ODD[:5]} and b/x differ\n",
    "link": create("engine/l", [ODD[:-3]], "120000") + create("engine/l/x"),
    "mode": create("engine/x", mode=f"1{ODD[:4]}"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_refusals(yard: Yard, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    patch = str(yard.series(BROKEN[kind]) / "p1.patch")
    for line in (["apply", patch, "--to", str(yard.tree)], ["lint", patch], ["import", patch]):
        done = yard.run(*line)
        assert done.code in (0, 1), done.text
        plain(done.text)
        said = yard.run(*line, "--check" if line[0] != "lint" else "--json", "--json")
        assert said.out.isascii()
        json.loads(said.out)


def _pins(yard: Yard) -> None:
    at = yard.at / "pins.toml"
    at.write_text(at.read_text() + '[pins."v1\\u001b[2J"]\nupstream = "engine"\n')


def _stack(yard: Yard) -> None:
    at = yard.at / "pins.toml"
    at.write_text(at.read_text() + '[stacks."a\\u001b[2J\\u202e"]\nguards = ["x\\u0007"]\n')


def _key(yard: Yard) -> None:
    at = yard.at / "pins.toml"
    at.write_text(at.read_text() + '[upstreams.engine."\\u001b[2J"]\nx = 1\n')


def _toml(yard: Yard) -> None:
    at = yard.at / "pins.toml"
    at.write_bytes(at.read_bytes() + ODD.encode())


def _series(yard: Yard) -> None:
    at = yard.at / "series" / "base" / "series"
    at.write_bytes(at.read_bytes() + f"a{ODD[:6]}.patch\n".encode())


def _listed(yard: Yard) -> None:
    yard.file("mine/series/base/x\x1b[2J\u202e.patch", HEAD)


def _lock(yard: Yard) -> None:
    at = yard.at / "series" / "base" / "series.lock"
    at.write_text(at.read_text().replace("five.patch", "f\\u001b[2J.patch", 1))


@pytest.mark.parametrize("break_it", [_pins, _stack, _key, _toml, _series, _listed, _lock])
def test_files_of_the_project(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[Yard], None]
) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    break_it(yard)
    for line in ("check", "list", "lint", "apply --stack x", "lock", "doctor"):
        done = yard.run(*line.split())
        plain(done.text)
        json.loads(yard.run(*line.split(), "--json").out)


def test_branches_tags_and_errors_of_git(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    at = yard.home / "repo"
    yard.file("repo/x.py", "")
    for line in ("init -q", "add -A", "commit -qm x", "tag v\u009b31m\u202e", "branch b\u009b2J"):
        subprocess.run(["git", *line.split(" ")], cwd=at, env=ENV, check=True)
    pins = yard.at / "pins.toml"
    pins.write_text(
        '[upstreams.engine]\nkind = "plain"\nsource = "../repo"\n'
        f'[pins.base]\nupstream = "engine"\ncommit = "{"1" * 40}"\n'
    )
    for args in (
        ["check"],
        ["import", "--commits", "v\u009b31m\u202e..b\u009b2J", "--from", "../repo"],
        ["import", "--commits", "x\x1b[2J..y", "--from", f"../repo{ODD[:4]}"],
        ["pin", f"v{ODD[:4]}", "--add"],
        ["lock", "--source", f"file:///x{ODD[:4]}"],
        ["apply", f"x{ODD[:4]}", "--to", "."],
        [f"verb{ODD[:4]}"],
        ["check", f"--option{ODD[:4]}"],
    ):
        done = yard.run(*args)
        assert done.code in (0, 1, 2, 3)
        plain(done.text)
