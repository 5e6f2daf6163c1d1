"""Rule 7: what `git diff` made, patchkit accepts exactly where `git apply` does at offset 0.

Trees, edits and option sets are made up; `git apply` judges each patch on the tree it was made
from, on a drifted one and on the tree it makes. The differences that may be are a committed list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomllib
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from patchkit.engine.apply import Outcome, apply_patch
from patchkit.engine.model import REGULAR, MemoryTree, Patch
from patchkit.engine.parse import scan
from patchkit.engine.place import stated
from patchkit.engine.rule import LOOSE, Rule
from patchkit.engine.strip import Root, target_paths
from patchkit.engine.text import split_lines
from tests.unit.engine.apply_referee import (
    Ids,
    Judgement,
    drifted,
    ids,
    judge,
    long_trees,
    memory,
)
from tests.unit.engine.git_referee import CONFIG, OPTIONS, Files, Git, two_trees

LIST = Path(__file__).parents[2] / "referee_differences.toml"
MORE_OPTIONS = (*OPTIONS, ("-U0",), ("--binary",), ("--irreversible-delete",), ("--submodule",))
EXACTLY = Rule(exact=True)


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("referee"))


def differences() -> list[dict[str, Any]]:
    with open(LIST, "rb") as handle:
        found: list[dict[str, Any]] = tomllib.load(handle)["difference"]
    return found


def listed(
    judged: Judgement,
    ours: list[str],
    patch: bytes,
    options: tuple[str, ...],
    place: str = "",
) -> bool:
    """Whether a difference is of a class of the committed list."""
    texts = {
        "place": place,
        "patch": patch.decode("latin-1"),
        "options": " ".join(options),
        "message": judged.said,
    }
    for entry in differences():
        where, _, what = entry["when"].partition(": ")
        if (
            entry["git"] == ("holds" if judged.holds else "refuses")
            and set(ours) <= set(entry["ours"])
            and what in texts[where]
        ):
            return True
    return False


def verdict(outcome: Outcome) -> list[str]:
    """The state, or why it is refused."""
    return sorted({f.name for f in outcome.findings}) or [outcome.state]


def check(
    git: Git,
    files: Files,
    ref: str,
    patch: bytes,
    options: tuple[str, ...],
    strip: int = 1,
    reverse: bool = False,
) -> None:
    judged = judge(git, ref, patch, strip, reverse=reverse)
    found = scan(patch, "x.patch")
    tree = memory(files)
    at_stated = judged.holds and not judged.moved
    if found.findings:
        ours = sorted({f.name for f in found.findings})
        assert not at_stated or listed(judged, ours, patch, options), ours
        return
    exact = apply_patch(tree, found.patch, EXACTLY, Root(strip), reverse)
    loose = apply_patch(tree, found.patch, LOOSE, Root(strip), reverse)
    same = judged.tree is not None and after(tree, loose) == judged.tree
    if at_stated and exact.state == "applied":
        assert after(tree, exact) == judged.tree
        assert loose.state == "applied"
        assert same
    elif at_stated or exact.state == "applied":
        place = cut_short(tree, found.patch, strip, reverse)
        assert listed(judged, verdict(exact), patch, options, place), verdict(exact)
    elif loose.state == "applied":
        # An offset: git takes the nearest place, the loose rule the only one.
        assert judged.holds, verdict(loose)
        assert same


def cut_short(tree: MemoryTree, patch: Patch, strip: int, reverse: bool) -> str:
    """Says so where a hunk's last line has no line end and the file goes on behind it."""
    for section, _, hunk in patch.hunks():
        turned = hunk.reversed() if reverse else hunk
        path = target_paths(section, Root(strip))[1 if reverse else 0]
        file = tree.get(path) if path is not None else None
        if file is None or not turned.old or turned.old[-1].endswith(b"\n"):
            continue
        if stated(turned) + len(turned.old) != len(split_lines(file.data)):
            return "a last line before the end"
    return ""


def after(tree: MemoryTree, outcome: Outcome) -> Ids:
    return ids(tree.with_changes(outcome.changes))


def one_example(git: Git, data: st.DataObject) -> None:
    options = data.draw(st.sampled_from(MORE_OPTIONS))
    config = data.draw(st.sampled_from(CONFIG))
    if data.draw(st.booleans()):
        old, new, other = data.draw(long_trees())
    else:
        old, new = data.draw(two_trees())
        other = data.draw(drifted(old))
    refs = git.trees(old, new, other)
    patch = git.diff(refs[0], refs[1], *options, config=config)
    if not patch:
        return
    note(patch.decode("latin-1"))
    plain = "--no-prefix" in options or "diff.noprefix=true" in config
    strip = 0 if plain and "--src-prefix=old/" not in options else 1
    # Mostly on the tree that the patch was made from, and on the drifted one.
    before, result = (1, 0) if "-R" in options else (0, 1)
    at = data.draw(st.sampled_from([before, before, 2, 2, result]))
    reverse = data.draw(st.sampled_from([False, False, at == result]))
    check(git, (old, new, other)[at], refs[at], patch, options, strip, reverse)


HOLD = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@settings(HOLD, max_examples=60)
@given(data=st.data())
def test_patchkit_accepts_exactly_where_git_does_at_offset_0(git: Git, data: st.DataObject) -> None:
    one_example(git, data)


@pytest.mark.slow
@settings(HOLD, max_examples=1500)
@given(data=st.data())
def test_patchkit_accepts_where_git_does_in_many_examples(git: Git, data: st.DataObject) -> None:
    one_example(git, data)


def test_referee_is_no_yes_man(git: Git) -> None:
    """The judge tells an exact place from a moved one and from none."""
    lines = [b"line %d\n" % n for n in range(20)]
    base = {b"f": (REGULAR, b"".join(lines))}
    changed = {b"f": (REGULAR, b"".join([*lines[:10], b"new\n", *lines[10:]]))}
    moved = {b"f": (REGULAR, b"top\n" + b"".join(lines))}
    gone = {b"f": (REGULAR, b"".join(lines[:9]))}
    refs = git.trees(base, changed, moved, gone)
    patch = git.diff(refs[0], refs[1])
    exact, offset, none = (judge(git, refs[n], patch, 1) for n in (0, 2, 3))
    assert (exact.holds, exact.moved) == (True, False)
    assert exact.tree == ids(memory(changed))
    assert (offset.holds, offset.moved) == (True, True)
    assert not none.holds


def test_binary_and_submodule_differ_as_the_list_says(git: Git) -> None:
    old, new = ({b"f": (REGULAR, data * 9)} for data in (b"\0\1\2", b"\0\1\3"))
    refs = git.trees(old, new)
    patch = git.diff(*refs, "--binary")
    assert judge(git, refs[0], patch, 1).holds
    assert [f.name for f in scan(patch, "x").findings] == ["binary-unsupported"]
    check(git, old, refs[0], patch, ("--binary",))
    module = (
        b"diff --git a/m b/m\nnew file mode 160000\nindex 0000000..2222222\n"
        b"--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n"
        b"+Subproject commit 2222222222222222222222222222222222222222\n"
    )
    assert judge(git, refs[0], module, 1).holds
    assert {f.name for f in scan(module, "x").findings} == {"unsupported"}
    check(git, old, refs[0], module, ())


def test_last_line_before_the_end_is_joined_by_git_and_refused_here(git: Git) -> None:
    old, new = {b"f": (REGULAR, b"a")}, {b"f": (REGULAR, b"new\na")}
    grown = {b"f": (REGULAR, b"a\nb\n")}
    refs = git.trees(old, new, grown)
    patch = git.diff(refs[0], refs[1])
    judged = judge(git, refs[2], patch, 1)
    joined = memory({b"f": (REGULAR, b"new\nab\n")})
    assert judged.tree == ids(joined)
    check(git, grown, refs[2], patch, ())


def test_list_of_differences_is_short_and_each_has_its_reason() -> None:
    entries = differences()
    assert len(entries) <= 8
    assert len({entry["name"] for entry in entries}) == len(entries)
    assert all(len(entry["why"]) > 40 for entry in entries)
