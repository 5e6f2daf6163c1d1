"""Attacks by patches that other tools have met, through every verb that takes a patch.

Each is built as it was used; nothing outside may be opened, and the refusal has the right name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.hostile.conftest import LINES, Yard, create, edit

Line = Callable[[Yard, Path], list[str]]
LOOSE: dict[str, Line] = {
    "apply": lambda yard, patch: ["apply", str(patch), "--to", str(yard.tree)],
    "series": lambda yard, patch: ["apply", "--series", str(patch.parent), "--to", str(yard.tree)],
}
"""Verbs that patch a folder."""
INTO: dict[str, Line] = {
    "import": lambda yard, patch: ["import", str(patch), "--date", "2031-01-31"],
    "import-folder": lambda yard, patch: ["import", str(patch.parent), "--date", "2031-01-31"],
}
"""Verbs that take a patch into the project."""
VERBS = LOOSE | INTO | {"lint": lambda yard, patch: ["lint", str(patch)]}


def refused(
    yard: Yard, *patches: str, by: Iterable[str] = VERBS, names: Iterable[str] = ("path-escape",)
) -> None:
    """Each verb refuses the patches with at least one of `names`, and no file is changed."""
    patch = yard.series(*patches) / "p1.patch"
    for verb in by:
        found = yard.names(*VERBS[verb](yard, patch))
        assert found & set(names), (verb, found)


@pytest.mark.parametrize(
    "names",
    [
        ("a/../../outside/victim.py", "b/../../outside/victim.py"),
        ("a/../outside/victim.py", "b/../outside/victim.py"),
        ("a/engine/lanes.py", "b/../../outside/victim.py"),
        ("a/engine\\..\\..\\outside\\victim.py", ""),
    ],
)
def test_gnu_patch_cve_2010_4651_dots_in_names(yard: Yard, names: tuple[str, str]) -> None:
    refused(yard, edit(*names))


def test_gnu_patch_cve_2010_4651_whatever_is_stripped(yard: Yard) -> None:
    """`diff -ru . ../outside` writes such names, and stripping may take the dots away: what is
    left is then looked for inside."""
    names = ("path-escape", "missing-target")
    refused(yard, edit("../outside/victim.py"), names=names, by=LOOSE | INTO)
    line = LOOSE["apply"](yard, yard.home / "given" / "p1.patch")
    for strip in "012":
        assert yard.names(*line, "-p", strip) & set(names)


def test_absolute_names(yard: Yard) -> None:
    names = ("path-escape", "missing-target", "absolute-path")
    refused(yard, edit(f"{yard.outside}/victim.py"), names=names)
    made = f"--- /dev/null\n+++ {yard.outside}/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    # Without its first slash, as GNU patch has it, the name is one inside.
    yard.attack(*LOOSE["apply"](yard, yard.series(made) / "p1.patch"), codes=(0, 1))


MOVES = [
    ("rename", "engine/lanes.py", "../outside/new.py"),
    ("rename", "../outside/victim.py", "engine/new.py"),
    ("copy", "../outside/secret", "engine/new.py"),
    ("copy", "engine/lanes.py", ".git/hooks/post-checkout"),
]


@pytest.mark.parametrize(("kind", "old", "new"), MOVES)
def test_renames_and_copies_out_of_the_tree(yard: Yard, kind: str, old: str, new: str) -> None:
    lead = f"diff --git a/{old} b/{new}\nsimilarity index 100%\n"
    refused(yard, f"{lead}{kind} from {old}\n{kind} to {new}\n")


def test_git_cve_2014_9390_a_git_folder_in_any_spelling(yard: Yard) -> None:
    for path in (".git/hooks/x", ".GIT/config", "git~1/config", "engine/.g\u200cit/config"):
        refused(yard, create(path, ["#!/bin/sh"], "100755"))


def test_gnu_patch_cve_2015_1196_and_git_cve_2023_23946_a_link_is_written_through(
    yard: Yard,
) -> None:
    link = create("engine/out", ["../../outside"], "120000")
    takes = [verb for verb in VERBS if verb != "lint"]  # which looks at one patch without a tree
    refused(yard, link + create("engine/out/new.py"), names=["symlink-in-path"], by=takes)
    refused(yard, link, create("engine/out/new.py"), names=["symlink-in-path"], by=["series"])
    refused(yard, link, edit("a/engine/out/victim.py"), names=["symlink-in-path"], by=["series"])
    yard.attack("import", str(yard.home / "given"), "--date", "2031-01-31")


def test_gnu_patch_cve_2019_13636_links_in_the_target(yard: Yard) -> None:
    os.symlink("../../outside", yard.tree / "engine" / "out")
    for patch in (edit("a/engine/out/victim.py"), create("engine/out/new.py")):
        refused(yard, patch, by=LOOSE, names=["symlink-in-path"])


def test_gnu_patch_cve_2019_13636_the_target_is_a_link(yard: Yard) -> None:
    (yard.tree / "engine" / "lanes.py").unlink()
    os.symlink("../../outside/victim.py", yard.tree / "engine" / "lanes.py")
    refused(yard, edit("a/engine/lanes.py"), by=LOOSE, names=["symlink-in-path", "conflict"])
    copy = (
        "diff --git a/engine/lanes.py b/engine/n.py\nsimilarity index 100%\n"
        "copy from engine/lanes.py\ncopy to engine/n.py\n"
    )
    # The link itself is copied, not what it leads to.
    yard.attack(*LOOSE["series"](yard, yard.series(copy) / "p1.patch"), code=0)
    assert os.readlink(yard.tree / "engine" / "n.py") == "../../outside/victim.py"


def test_a_hard_link_is_not_written_through(yard: Yard) -> None:
    """A package cache shares its files with what was installed from it."""
    lanes = yard.tree / "engine" / "lanes.py"
    lanes.unlink()
    shared = yard.file("shared.py", LINES)
    os.link(shared, lanes)
    yard.attack(*LOOSE["apply"](yard, yard.series(edit("a/engine/lanes.py")) / "p1.patch"), code=0)
    assert shared.read_text() == LINES
    assert "line twenty" in lanes.read_text()


def test_git_cve_2023_25652_rejects_are_written_nowhere(yard: Yard) -> None:
    """`git apply --reject` wrote FILE.rej through a link that stood there."""
    for name in ("lanes.py.rej", "lanes.py.orig", "lanes.py~"):
        os.symlink("../../outside/victim.py", yard.tree / "engine" / name)
    patch = edit("a/engine/lanes.py").replace("-line 20", "-another line")
    refused(yard, patch, by=LOOSE, names=["conflict"])


_WHEN = "2018-13-37 13:37:37.000000000 +0100"
ED = [
    f"--- a\t{_WHEN}\n+++ b\t{_WHEN}\n1337a\n1,112d\n!touch OUT/pwned\n",
    "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n0a\nx\n.\n!touch OUT/pwned\nw\nq\n",
    "Index: engine/lanes.py\n1d\nr !touch OUT/pwned\n.\n",
    "diff -e a/engine/lanes.py b/engine/lanes.py\n20c\nline twenty\n.\n!touch OUT/pwned\n",
    "*** a/engine/lanes.py\n--- b/engine/lanes.py\n1,2c\n!touch OUT/pwned\n.\n",
]


@pytest.mark.parametrize("script", ED, ids=range(len(ED)))
def test_gnu_patch_cve_2018_1000156_and_cve_2018_20969_ed_scripts(yard: Yard, script: str) -> None:
    names = ("no-diff", "not-unified", "bare-hunk-header", "no-file-header")
    refused(yard, script.replace("OUT", str(yard.outside)), names=names)
    assert not (yard.outside / "pwned").exists()


def test_git_cve_2024_32002_submodules(yard: Yard) -> None:
    """A submodule at A/modules/x beside a link a -> .git put files into the git folder, where the
    file system ignores case."""
    entry = create("A/modules/x", ["Subproject commit " + "1" * 40], "160000")
    refused(yard, entry + create("a", [".git"], "120000"), names=["unsupported"])


def test_git_cve_2024_32002_a_link_that_differs_by_case(yard: Yard) -> None:
    """Where the file system ignores case, A is the link a."""
    link = create("a", [".git"], "120000")
    hook = create("A/hooks/post-checkout", ["#!/bin/sh"], "100755")
    takes = [verb for verb in VERBS if verb != "lint"]
    refused(yard, link + hook, by=takes, names=["symlink-in-path"])
    refused(yard, hook + link, by=takes, names=["symlink-in-path"])
    refused(yard, link, hook, by=["series"], names=["symlink-in-path"])
