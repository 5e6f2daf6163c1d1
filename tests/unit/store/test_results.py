from __future__ import annotations

import os
from pathlib import Path

from patchkit.engine.model import File
from patchkit.store import Commit, Result, Store, key_of
from patchkit.store.results import Results

from .conftest import imported


def test_a_result_is_given_back_with_its_text(store: Store) -> None:
    tree = imported(store, {"a": File(b"1")})
    store.remember("key", (tree,), '{"n": 1}')
    assert store.cached("key") == Result((tree,), '{"n": 1}')
    assert store.cached("other") is None


def test_the_longest_known_prefix_is_found(store: Store) -> None:
    tree = imported(store, {"a": File(b"1")})
    keys = [key_of("base", f"patch {n}") for n in range(5)]
    store.remember_all(keys[0], {k: Result((tree,), str(n)) for n, k in enumerate(keys[:4])})
    assert store.longest(keys) == (3, Result((tree,), "3"))
    changed = [*keys[:2], "x", "y"]
    assert store.longest(changed) == (1, Result((tree,), "1"))
    assert store.longest(["x", "y"]) is None


def test_a_result_whose_objects_are_gone_or_damaged_is_not_given(store: Store) -> None:
    tree = imported(store, {"a": File(b"1")})
    keys = ["k0", "k1"]
    store.remember_all("k0", {"k0": Result((tree,)), "k1": Result(("2" * 40,))})
    assert store.longest(keys) == (0, Result((tree,)))


def test_a_commit_that_is_paired_with_another_tree_is_not_given(store: Store) -> None:
    tree, other = imported(store, {"a": File(b"1")}), imported(store, {"a": File(b"2")})
    commit = store.commit_chain(tree, (), Commit({})).commit
    store.remember("right", (commit, tree))
    store.remember("wrong", (commit, other))
    assert store.cached("right") is not None
    assert store.cached("wrong") is None


def test_a_cut_or_edited_line_is_passed_over(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    results.add("g", {"a": Result(("1" * 40,)), "b": Result(("2" * 40,)), "c": Result(("3" * 40,))})
    (file,) = (p for p in tmp_path.iterdir() if not p.name.endswith(".lock"))
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"2222", b"4444")
    file.write_bytes(b"".join(lines)[:-20] + b"\xff\n\n{}\n")
    assert list(results.read("g")) == ["a"]


def test_other_lines_of_a_group_are_kept_and_old_ones_make_room(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    results.add("g", {"a": Result(("1",))})
    results.add("g", {"b": Result(("2",))})
    results.add("g", {"a": Result(("3",))})
    assert results.read("g") == {"b": Result(("2",)), "a": Result(("3",))}
    results.add("g", {str(n): Result(("4",)) for n in range(6000)})
    assert len(results.read("g")) == 6000
    assert "a" not in results.read("g")


def test_adding_what_is_known_writes_nothing(tmp_path: Path) -> None:
    results = Results(str(tmp_path))
    results.add("g", {"a": Result(("1",))})
    (file,) = (p for p in tmp_path.iterdir() if not p.name.endswith(".lock"))
    os.utime(file, (1, 1))
    results.add("g", {"a": Result(("1",))})
    assert file.stat().st_mtime == 1


def test_parts_of_a_key_cannot_run_into_each_other() -> None:
    assert key_of("ab", "c") != key_of("a", "bc") != key_of("abc")
    assert key_of("a", b"\xff") == key_of("a", "\udcff")


def test_a_line_of_another_form_is_passed_over(tmp_path: Path) -> None:
    from patchkit.store.results import _check, _digest

    results = Results(str(tmp_path))
    results.add("g", {"k": Result(("1" * 40,))})
    (file,) = (p for p in tmp_path.iterdir() if not p.name.endswith(".lock"))
    kept = file.read_bytes()
    for body in (b'["k", [1, null], ""]', b'["k", "x", 3]', b'{"key": "k"}', b"[1]", b"[" * 50000):
        line = b"%s %s %s\n" % (_digest("other"), _check(body), body)
        file.write_bytes(kept + line)
        assert list(results.read("g")) == ["k"]
