"""Links where a project or a target has files of its own: nothing is written through them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.conftest import LINES, Yard, edit

VERBS = (
    "apply",
    "new six",
    "edit five",
    "rebase --onto base",
    "rename five vee",
    "import ../five.patch --name x",
    "check",
    "doctor",
    "lock",
)
OWN = (
    "series/base/series.lock",
    "series/base/five.patch",
    "series/base/series",
    "series/base/proofs",
    "series/base",
    "series/.resolutions",
    "series",
    "pins.toml",
    ".patchkit",
    ".patchkit/journal",
    "build",
    "build/edit-base",
    "build/engine-base",
    "build/edit-base/.git",
)


@pytest.mark.parametrize("name", OWN)
def test_a_part_of_the_project_that_leads_out_of_it(yard: Yard, name: str) -> None:
    """What stood there stands outside now, in the folder that is watched."""
    at, outside = yard.at / name, yard.outside / "folder" / "part"
    at.parent.mkdir(parents=True, exist_ok=True)
    if at.exists():
        shutil.move(at, outside)
    elif "." in at.name and not name.endswith((".git", ".patchkit", ".resolutions")):
        outside.write_text("")
    else:
        outside.mkdir()
    at.symlink_to(outside)
    for line in VERBS:
        before = _all(yard)
        done = yard.run(*line.split())
        assert "fault of patchkit" not in done.text
        assert _all(yard) == before, f"{line}: {done.text}"
    if name == "build":
        assert "symlink-in-path" in yard.run("apply").err
        yard.run("apply", "--to", "../tree of mine")
        assert (yard.home / "tree of mine" / "engine" / "lanes.py").exists()


def _all(yard: Yard) -> dict[str, bytes]:
    found = {}
    for folder, folders, names in os.walk(yard.outside):
        found.update(dict.fromkeys((os.path.join(folder, f) for f in folders), b""))
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.join(folder, name)] = file.read()
    return found


TARGET = (
    ".patchkit",
    ".patchkit/state.json",
    ".patchkit/journal",
    ".patchkit/journal/journal.json",
    ".patchkit/base",
)


@pytest.mark.parametrize("name", TARGET)
@pytest.mark.parametrize("applied", [False, True])
def test_a_part_of_a_target_s_own_folder_that_leads_out_of_it(
    yard: Yard, name: str, applied: bool
) -> None:
    patch = yard.file("one.patch", edit("a/engine/lanes.py"))
    yard.file("tree/engine/more.py", f"{LINES}and more\n")
    other = yard.file("two.patch", edit("a/engine/more.py"))
    if applied:
        assert yard.run("apply", str(patch), "--to", str(yard.tree)).code == 0
    at, outside = yard.tree / name, yard.outside / "folder" / "part"
    at.parent.mkdir(parents=True, exist_ok=True)
    if at.exists():
        shutil.move(at, outside)
    elif name.endswith(".json"):
        outside.write_text("")
    else:
        outside.mkdir()
    at.symlink_to(outside)
    for line in ("apply", "revert"):
        before = _all(yard)
        words = [str(other)] if line == "apply" else []
        done = yard.run(line, *words, "--to", str(yard.tree))
        assert "fault of patchkit" not in done.text
        assert _all(yard) == before, f"{line}: {done.text}"


def _evil(yard: Yard, what: str) -> str:
    """A shell command that leaves a mark."""
    return f"sh -c 'touch {yard.home}/evil-{what}; cat' "


def _shipped(yard: Yard) -> Path:
    """A work tree as a stranger may pack it with his project."""
    assert yard.run("apply").code == 0
    at = yard.at / "build" / "engine-base"
    git = at / ".git"
    with open(git / "config", "a") as file:
        file.write('[filter "evil"]\n')
        for word in ("clean", "smudge", "process"):
            file.write(f'\t{word} = "{_evil(yard, word)}"\n')
        file.write(f'[core]\n\tfsmonitor = "{_evil(yard, "monitor")}"\n\thooksPath = hooks\n')
        file.write(f'[diff]\n\texternal = "{_evil(yard, "diff")}"\n')
        file.write(
            f'[remote "evil"]\n\turl = {yard.home}/tree\n\tpromisor = true\n'
            f'\tuploadpack = "{_evil(yard, "fetch")}"\n'
            "[extensions]\n\tpartialClone = evil\n"
            '[protocol "file"]\n\tallow = always\n'
        )
    (git / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    (git / "hooks").mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        hook = git / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{_evil(yard, name)}\n")
        hook.chmod(0o755)
    return at


def test_a_work_tree_s_own_configuration_runs_nothing(yard: Yard) -> None:
    at = _shipped(yard)
    series = yard.at / "series" / "base"
    (series / "six.patch").write_text(edit("a/engine/lanes.py", line=30))
    with open(series / "series", "a") as file:
        file.write("six.patch\n")
    assert yard.run("lock").code == 0
    for line in ("apply", "check --tree build/engine-base", "doctor", "check"):
        os.utime(at / "engine" / "lanes.py")
        assert yard.run(*line.split()).code == 0, line
    assert "line twenty" in (at / "engine" / "lanes.py").read_text().splitlines()[30]
    shutil.copytree(at, yard.at / "build" / "edit-base", symlinks=True)
    for line in ("edit five", "refresh --from-commits", "new seven", "refresh"):
        yard.run(*line.split())
    (at / ".git" / "HEAD").write_text("1" * 40 + "\n")  # git would ask the server for it
    yard.run("apply")
    yard.run("check", "--tree", "build/engine-base")
    assert [p.name for p in yard.home.glob("evil-*")] == []


PARTS = ("patchkit", "objects", "objects/pack", "refs", "refs/heads", "info", "index", "HEAD")


@pytest.mark.parametrize("name", [*PARTS, "commondir"])
def test_a_work_tree_s_repository_that_leads_out_of_it(yard: Yard, name: str) -> None:
    assert yard.run("apply").code == 0
    at = yard.at / "build" / "engine-base" / ".git" / name
    outside = yard.outside / "folder" / "part"
    if name == "commondir":
        shutil.copytree(at.parent, outside)
        at.write_text(f"{outside}\n")
    else:
        shutil.move(at, outside)
        at.symlink_to(outside)
    (yard.at / "series" / "base" / "series").write_text("five.patch\n# more\n")
    before = _all(yard)
    for line in ("lock", "apply", "apply --all", "check --tree build/engine-base", "edit five"):
        done = yard.run(*line.split())
        assert "fault of patchkit" not in done.text
        assert _all(yard) == before, line
    assert "symlink-in-path" in yard.run("apply").err
