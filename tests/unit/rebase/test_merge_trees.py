"""Carrying a patch to another tree is git's three-way merge of whole trees: git is the referee."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.derive.carry import carry
from patchkit.engine.model import File, MemoryTree
from tests.unit.rebase.ground import QUIET

WORDS = [f"{letter * (1 + n % 5)}" for n, letter in enumerate("abcdefghijklmnop")]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14, unique=True).map(sorted)
"""Lines in order, each once: what two of them have in common is no matter of the diff algorithm,
and git merges trees with another one than files (tests/unit/engine has the files)."""
EDIT = st.tuples(
    st.integers(0, 14), st.integers(0, 3), st.lists(st.sampled_from(WORDS), max_size=3)
)
NAMES = ("one.py", "two.py", "pkg/three.py")
CHANGE = st.one_of(st.none(), TEXT, st.lists(EDIT, min_size=1, max_size=2))
"""What a side does with a file: deletes it, writes it anew, or edits it."""
Lines = list[str]
Tree = dict[str, Lines]


def changed(tree: Tree, changes: dict[str, object]) -> Tree:
    out = {name: list(lines) for name, lines in tree.items()}
    for name, change in changes.items():
        if change is None:
            out.pop(name, None)
        elif isinstance(change, list) and change and isinstance(change[0], tuple):
            lines = out.get(name)
            if lines is None:
                continue
            for at, gone, come in change:
                at = min(at, len(lines))
                lines[at : at + gone] = come
            lines[:] = sorted({*lines})
        else:
            out[name] = [str(line) for line in change]  # type: ignore[attr-defined]
    return out


def data(lines: Lines) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def git(at: Path, *args: str, input: bytes = b"") -> tuple[int, str]:
    done = subprocess.run(
        ["git", "-c", "merge.renames=false", "-c", "merge.conflictStyle=diff3", *args],
        cwd=at,
        env=QUIET,
        input=input,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stdout.decode()


Moves = dict[str, str]
"""Old name -> new name."""


def merged_by_git(
    at: Path, base: Tree, ours: Tree, theirs: Tree
) -> tuple[dict[str, bytes] | None, Moves, Moves]:
    """git's merge of two trees over a third, None where it conflicts, and the moves that it finds
    on each side. No work tree is made."""
    stream = []
    for mark, (name, tree) in enumerate((("base", base), ("ours", ours), ("theirs", theirs)), 1):
        stream.append(f"reset refs/heads/{name}\ncommit refs/heads/{name}\nmark :{mark}\n")
        stream.append("committer A <a@example.invalid> 1700000000 +0000\ndata 0\n")
        stream.append("from :1\ndeleteall\n" if mark > 1 else "")
        for path, lines in tree.items():
            text = data(lines).decode()
            stream.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n")
    assert git(at, "fast-import", "--quiet", "--force", input="".join(stream).encode())[0] == 0
    moves = moved(at, "ours"), moved(at, "theirs")
    code, out = git(at, "merge-tree", "--write-tree", "ours", "theirs")
    if code:
        return None, *moves
    tree = out.split()[0]
    rows = git(at, "ls-tree", "-r", "-z", tree)[1].split("\0")[:-1]
    names = [row.partition("\t")[2] for row in rows]
    files = {name: git(at, "cat-file", "blob", f"{tree}:{name}")[1].encode() for name in names}
    return files, *moves


def moved(at: Path, side: str) -> Moves:
    """The files that git finds moved on a side."""
    rows = git(at, "diff", "--diff-filter=R", "-M", "--name-status", "-z", "base", side)[1]
    fields = rows.split("\0")[:-1]
    return dict(zip(fields[1::3], fields[2::3], strict=True))


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("merges")
    git(at, "init", "-q", "--bare", ".")
    return at


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(st.sampled_from(NAMES), TEXT, min_size=1),
    st.dictionaries(st.sampled_from(NAMES), CHANGE, max_size=3),
    st.dictionaries(st.sampled_from(NAMES), CHANGE, min_size=1, max_size=3),
)
def test_a_carried_patch_gives_the_tree_of_a_merge_or_conflicts_where_it_does(
    repo: Path, base: Tree, upstream: dict[str, object], patch: dict[str, object]
) -> None:
    ours, theirs = changed(base, upstream), changed(base, patch)
    changes = {
        name: File(data(theirs[name])) if name in theirs else None
        for name in {*base, *theirs}
        if base.get(name) != theirs.get(name)
    }
    now = MemoryTree({name: File(data(lines)) for name, lines in ours.items()})
    before = MemoryTree({name: File(data(lines)) for name, lines in base.items()})
    carried = carry(before, changes, now)
    wanted, upstream_moved, patch_moved = merged_by_git(repo, base, ours, theirs)
    # git follows moves that nobody states. Those of upstream are found before a patch is carried
    # (patchkit.rebase.moves); one that a patch does not state is a conflict, for a person to see.
    followed = {*upstream_moved, *patch_moved, *patch_moved.values()}
    if carried.clashes:
        assert wanted is None or followed & {clash.path for clash in carried.clashes}
    elif wanted is None:
        assert any(changes.get(old, now) is None for old in upstream_moved)
    else:
        assert wanted == {n: f.data for n, f in now.with_changes(carried.changes).files.items()}
