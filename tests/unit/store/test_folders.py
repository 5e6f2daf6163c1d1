"""Trees rewritten folder by folder are the trees that git itself would write."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File, path_bytes
from patchkit.store import Store
from patchkit.store.folders import parse_folder

from .conftest import imported

# Names that sort differently as a file and as a folder ("a" before "a.b" before "a/…").
names = st.sampled_from(["a", "a.b", "a-b", "a0", "b", "Z", "\udcff", "é", "a b"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
files = st.builds(
    File, st.binary(max_size=6), st.sampled_from([REGULAR, REGULAR, EXECUTABLE, SYMLINK])
)


def without_clashes(found: dict[str, File]) -> dict[str, File]:
    """Of two entries where one would be a folder of the other, the longer one goes."""
    return {
        path: file
        for path, file in found.items()
        if not any(path.startswith(other + "/") for other in found)
    }


trees = st.dictionaries(paths, files, max_size=12).map(without_clashes)


def by_git(files: dict[str, File]) -> str:
    """The tree id that git's own index gives."""
    with tempfile.TemporaryDirectory() as at:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_DIR": at,
            "GIT_INDEX_FILE": at + "/index",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        subprocess.run(["git", "init", "-q", "--bare", at], check=True, env=env)
        lines = b"".join(
            b"%o %s\t%s\0" % (f.mode, f.oid.encode(), path_bytes(p)) for p, f in files.items()
        )
        subprocess.run(
            ["git", "update-index", "-z", "--index-info"], input=lines, check=True, env=env
        )
        made = subprocess.run(
            ["git", "write-tree", "--missing-ok"], capture_output=True, check=True, env=env
        )
        return made.stdout.decode().strip()


referee_settings = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@referee_settings
@given(found=trees)
def test_an_imported_tree_has_the_id_that_git_gives(store: Store, found: dict[str, File]) -> None:
    assert imported(store, found) == by_git(found)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(states=st.lists(trees, min_size=2, max_size=4))
def test_changes_lead_to_the_same_tree_as_importing_it_whole(
    store: Store, states: list[dict[str, File]]
) -> None:
    tree = imported(store, states[0])
    for before, after in itertools.pairwise(states):
        changes: dict[str, File | None] = dict.fromkeys(before)
        changes |= after
        tree = store.write_tree(tree, changes)
        assert tree == imported(store, after)
        assert store.verify(tree) == ()


def test_a_folder_that_becomes_empty_goes(store: Store) -> None:
    tree = imported(store, {"a/b/c": File(b"1"), "d": File(b"2")})
    assert store.write_tree(tree, {"a/b/c": None}) == imported(store, {"d": File(b"2")})


def test_a_file_may_take_the_place_of_a_folder_that_goes(store: Store) -> None:
    tree = imported(store, {"a/b": File(b"1"), "a/c/d": File(b"1")})
    changed = store.write_tree(tree, {"a": File(b"2"), "a/b": None, "a/c/d": None})
    assert changed == imported(store, {"a": File(b"2")})


def test_a_folder_may_take_the_place_of_a_file_that_goes(store: Store) -> None:
    tree = imported(store, {"a": File(b"1")})
    changed = store.write_tree(tree, {"a/b": File(b"2"), "a": None})
    assert changed == imported(store, {"a/b": File(b"2")})


@pytest.mark.parametrize(
    ("have", "change"), [("a", "a/b"), ("a/b/c", "a/b")], ids=["file-above", "folder-there"]
)
def test_a_name_that_is_taken_is_never_silently_replaced(
    store: Store, have: str, change: str
) -> None:
    tree = imported(store, {have: File(b"1")})
    with pytest.raises(ValueError, match="stands where"):
        store.write_tree(tree, {change: File(b"2")})


def test_deleting_what_is_not_there_changes_nothing(store: Store) -> None:
    tree = imported(store, {"a/b": File(b"1")})
    assert store.write_tree(tree, {"x": None, "a/x": None, "a/b/c": None, "q/r/s": None}) == tree


def test_a_mode_is_a_change(store: Store) -> None:
    tree = imported(store, {"a/b": File(b"1")})
    changed = store.write_tree(tree, {"a/b": File(b"1", EXECUTABLE)})
    assert changed == imported(store, {"a/b": File(b"1", EXECUTABLE)})


def test_an_id_with_any_byte_is_read_whole() -> None:
    raw = b"100644 a\0" + b"\n\0 40000 x\0" + bytes(9) + b"40000 b\0" + b"\n" * 20
    found = parse_folder(raw)
    assert {n: (e.mode, e.oid) for n, e in found.items()} == {
        b"a": (0o100644, raw[9:29]),
        b"b": (0o40000, b"\n" * 20),
    }
