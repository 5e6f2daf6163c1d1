"""What a project's files may hold that nobody means well with, through every verb: nothing outside
is touched, nothing is waited for, what is said is plain and its JSON is JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.conftest import Hangs, Yard, edit
from tests.hostile.test_terminals import plain
from tests.hostile.watching import watched
from tests.unit.target.installing import Site

VERBS = """
check; lock; lock --check; list; show five; lint; lint --fix; apply; apply --all --tree-only
edit five; new six; refresh; graph; graph --format mermaid; export -o ../out; report -o ../pages
bundle -o ../b.pyz; doctor; diff --series base base; matrix; drift --onto base
blame five --onto base; pin v2 --add; fetch; rename five vee; drop five; import ../five.patch
build --how overlay; cache; prove --no-run; apply --installed --site ../site
check --installed --site ../site; revert --installed --site ../site; cache --clear
"""
PINS, SERIES = "pins.toml", "series/base"


def put(path: str, old: str, new: str) -> Callable[[Yard], None]:
    """Something else in the place of some text of a file."""

    def change(yard: Yard) -> None:
        at = yard.at / path
        assert old in at.read_text()
        at.write_text(at.read_text().replace(old, new))

    return change


def holds(path: str, text: str) -> Callable[[Yard], None]:
    """A file with that text, of the project or of the folder around it."""
    return lambda yard: yard.file(f"mine/{path}", text.encode("utf-8", "surrogateescape")) and None


def special(path: str, kind: str) -> Callable[[Yard], None]:
    """A FIFO, or a link to a file without an end, in the place of a file."""

    def change(yard: Yard) -> None:
        at = Path(os.path.normpath(yard.at / path))
        at.parent.mkdir(parents=True, exist_ok=True)
        at.unlink(missing_ok=True)
        os.mkfifo(at) if kind == "fifo" else at.symlink_to(kind)

    return change


def upstream(key: str, value: str) -> Callable[[Yard], None]:
    return put(PINS, "[upstreams.engine]\n", f"[upstreams.engine]\n{key} = {json.dumps(value)}\n")


def source(value: str) -> Callable[[Yard], None]:
    return put(PINS, 'source = "../upstream"', f'source = "{value}"')


def server(address: str) -> Callable[[Yard], None]:
    def change(yard: Yard) -> None:
        upstream("git", address)(yard)
        source("git")(yard)
        put(PINS, 'upstream = "engine"\n', f'upstream = "engine"\ncommit = "{"1" * 40}"\n')(yard)

    return change


def pin(name: str) -> Callable[[Yard], None]:
    return put(PINS, "[pins.base]", f"[pins.{name}]")


def file_of_pin(name: str) -> Callable[[Yard], None]:
    row = f'[pins.base.files]\n{json.dumps(name)} = "sha256:{"0" * 64}"\n[pins.base]'
    return put(PINS, "[pins.base]", row)


ODD: dict[str, Callable[[Yard], None]] = {
    "stack that is a path": put(PINS, "[pins", '[stacks."../../x"]\nguards = []\n[pins'),
    "stack with escapes": put(PINS, "[pins", '[stacks."a\\u001b[2J"]\nguards = ["b"]\n[pins'),
    "stack of HTML": put(PINS, "[pins", '[stacks."<script>"]\nguards = []\n[pins'),
    "upstream that is a path": put(PINS, "engine]", '"../../x"]'),
    "upstream with escapes": put(PINS, "engine]", '"\\u001b[2J"]'),
    "pin that is a path": pin('"../../x"'),
    "pin of two parts": pin('"a/b"'),
    "pin of two lines": pin('"a\\nb"'),
    "pin like an option": pin('"--help"'),
    "pin .git": pin('".git"'),
    "pin of 5,000 letters": pin(f'"{"x" * 5000}"'),
    "pin without a name": pin('""'),
    "file of a pin below": file_of_pin("../../../outside/secret"),
    "file of a pin, absolute": file_of_pin("/etc/passwd.tar.gz"),
    "server that is a command": server("ext::sh -c touch% evil"),
    "server that is an option": server("--upload-pack=touch evil"),
    "server that is a device": server("/dev/zero"),
    "package that is a path": upstream("package", "../../outside"),
    "project that is a path": upstream("pypi", "../../outside"),
    "root that is a path": upstream("root", "../../outside"),
    "kind that is a path": put(PINS, 'kind = "plain"', 'kind = "../../x"'),
    "source without an end": source("/dev/zero"),
    "source of processes": source("/proc/self/task"),
    "source with a FIFO": special("../upstream/engine/f.py", "fifo"),
    "source with a device": special("../upstream/engine/z.py", "/dev/zero"),
    "source in a circle": special("../upstream/engine/loop", "."),
    "source with odd names": holds("../upstream/engine/a\x1b[2J\udcff\n.py", ""),
    "guard with escapes": holds(f"{SERIES}/series", "five.patch #+a\x1b[2J\n"),
    "guard that is a path": holds(f"{SERIES}/series", "five.patch #+../../x\n"),
    "patch outside": holds(f"{SERIES}/series", "../../../outside/secret\n"),
    "patch by its whole path": holds(f"{SERIES}/series", "/etc/passwd\n"),
    "an option without an end": holds(f"{SERIES}/series", f"five.patch -p{'9' * 4000}\n"),
    "pins.toml without an end": special(PINS, "/dev/zero"),
    "patch that is a FIFO": special(f"{SERIES}/five.patch", "fifo"),
    "patch without an end": special(f"{SERIES}/five.patch", "/dev/zero"),
    "lock without an end": special(f"{SERIES}/series.lock", "/dev/zero"),
    "proof without an end": special(f"{SERIES}/proofs/test_five.py", "/dev/zero"),
    "result that is a FIFO": special(f"{SERIES}/proofs/results/five.json", "fifo"),
    "unproven that is a FIFO": special(f"{SERIES}/proofs/five.unproven", "fifo"),
    "mutant that is a FIFO": special(f"{SERIES}/proofs/five.mutants/x.diff", "fifo"),
    "resolution that is a FIFO": special("series/.resolutions/x", "fifo"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ODD)
def test_of_a_project(yard: Yard, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    (yard.home / "site").mkdir()
    ODD[what](yard)
    _all_verbs(yard, VERBS)


INFO = "../site/engine-1.0.dist-info"
INSTALLED: dict[str, Callable[[Yard], None]] = {
    "name with escapes": holds(f"{INFO}/METADATA", "Name: engine\x1b[2J\nVersion: 1.0\x1b[2J\n"),
    "METADATA without an end": special(f"{INFO}/METADATA", "/dev/zero"),
    "METADATA that is a FIFO": special(f"{INFO}/METADATA", "fifo"),
    "RECORD without an end": special(f"{INFO}/RECORD", "/dev/zero"),
    "RECORD that is a FIFO": special(f"{INFO}/RECORD", "fifo"),
    "RECORD that leads out": holds(
        f"{INFO}/RECORD", "../outside/secret,sha256=x,1\nengine/../../outside/secret,sha256=x,1\n"
    ),
    "RECORD with escapes": holds(f"{INFO}/RECORD", '"engine/a\x1b[2J.py",sha256=x,1\n'),
    "state without an end": special(f"{INFO}/patchkit.json", "/dev/zero"),
    "state that is a FIFO": special(f"{INFO}/patchkit.json", "fifo"),
    "a journal that is a link": special(f"{INFO}/patchkit-journal", "../../outside/folder"),
    "a module that is a FIFO": special("../site/engine/lanes.py", "fifo"),
    "a package that is a link": special("../site/engine/sub", "../../outside/folder"),
}
AT = "--installed --site ../site"


@pytest.mark.parametrize("what", INSTALLED)
def test_of_an_installed_package(yard: Yard, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr("patchkit.cli.out.is_terminal", lambda stream: True)
    lines = (yard.at / "../upstream/engine/lanes.py").read_bytes()
    Site(yard.home / "site").install({"engine/__init__.py": b"", "engine/lanes.py": lines})
    yard.file("one.patch", edit("a/engine/lanes.py", line=9))
    INSTALLED[what](yard)
    verbs = f"apply {AT}; apply ../one.patch {AT}; check {AT}; revert {AT}; apply --check {AT}"
    _all_verbs(yard, f"{verbs}; revert --discard-edits {AT}; doctor")


def _all_verbs(yard: Yard, verbs: str) -> None:
    for line in verbs.replace("\n", ";").split(";"):
        for more in ([], ["--json"]) if line.strip() else ():
            with watched(yard.outside) as seen:
                try:
                    done = yard.run(*line.split(), *more)
                except Hangs:
                    raise AssertionError(f"{line} hangs") from None
            assert seen == [], line
            assert done.code in (0, 1, 2, 3)
            assert "fault of patchkit" not in done.text, f"{line}\n{done.text}"
            plain(done.text)
            if more:
                json.loads(done.out)
            evil = [path for path in (yard.at, yard.home) if (path / "evil").exists()]
            assert evil == [], line
