"""What the lock says of a tree, path by path, without applying."""

from __future__ import annotations

import pytest

from patchkit.series.lockfile import Blob, Lock, LockedPin, chain_of
from patchkit.series.state import Lookup, TreeState, classify, stacks_of

SHA = "5" * 64
A0, A1, A3, B2, C0, X = (Blob(0o100644, c * 40) for c in "abcdef")
BASE: dict[str, Blob | None] = {"a": A0, "b": None, "c": C0}
STEPS: list[dict[str, Blob | None]] = [{"a": A1}, {"b": B2}, {"a": A3, "c": None}]
NAMES = ["one.patch", "two.patch", "three.patch"]


def lock() -> Lock:
    default = chain_of(["one.patch"], {}, {"a": A0}, [{"a": A1}])
    whole = chain_of(NAMES, {}, BASE, STEPS)
    patches = tuple((n, SHA) for n in NAMES)
    return Lock(LockedPin("v1", "mine"), SHA, patches, {}, whole, {"default": default})


def tree(count: int, **other: Blob | None) -> dict[str, Blob | None]:
    files = dict(BASE)
    for step in STEPS[:count]:
        files.update(step)
    return {**files, **other}


def ask(files: dict[str, Blob | None], stack: str | None = None) -> TreeState:
    return classify(lock(), stack, files.get)


@pytest.mark.parametrize(
    ("count", "kind", "patch"),
    [
        (0, "pristine", ""),
        (1, "upto", "one.patch"),
        (2, "upto", "two.patch"),
        (3, "patched", "three.patch"),
    ],
)
def test_every_number_of_patches_is_told_apart(count: int, kind: str, patch: str) -> None:
    state = ask(tree(count))
    assert (state.kind, state.count, state.patch) == (kind, count, patch)
    assert state.counts == (count,)


def test_each_path_has_its_own_state() -> None:
    state = ask(tree(2))
    assert [(p.path, p.kind, p.counts, p.patch) for p in state.paths] == [
        ("a", "upto", (1, 2), "one.patch"),
        ("b", "patched", (2, 3), "two.patch"),
        ("c", "pristine", (0, 1, 2), ""),
    ]


def test_a_path_that_is_neither_base_nor_ours_is_foreign() -> None:
    state = ask(tree(3, a=X))
    assert (state.kind, state.count) == ("foreign", -1)
    assert state.of_kind("foreign") == ["a"]
    (path,) = [p for p in state.paths if p.kind == "foreign"]
    assert (path.found, path.base, path.patched) == (X, A0, A3)


def test_known_paths_of_different_counts_are_mixed() -> None:
    state = ask(tree(0, b=B2))
    assert (state.kind, state.counts) == ("mixed", ())
    assert state.of_kind("foreign") == []


def test_a_file_that_is_missing_or_back_again_is_foreign_or_mixed() -> None:
    assert ask(tree(3, b=None)).kind == "mixed"
    assert ask(tree(1, a=None)).kind == "foreign"


def test_a_mode_counts_where_it_is_known_and_ids_alone_do_too() -> None:
    executable = Blob(0o100755, A3.oid)
    assert ask(tree(3, a=executable)).kind == "foreign"
    files = {path: None if b is None else b.oid for path, b in tree(3, a=executable).items()}
    lookup: Lookup = files.get
    assert classify(lock(), None, lookup).kind == "patched"


def test_a_stack_sees_the_patches_of_other_stacks_as_foreign_and_names_them() -> None:
    assert ask(tree(1), "default").kind == "patched"
    state = ask(tree(2), "default")
    assert state.kind == "foreign"
    (path,) = [p for p in state.paths if p.kind == "foreign"]
    assert (path.path, path.elsewhere) == ("b", "two.patch")


def test_paths_that_the_target_cannot_hold_are_left_out() -> None:
    state = classify(lock(), None, tree(3, c=X).get, only=lambda path: path != "c")
    assert state.kind == "patched"
    assert [p.path for p in state.paths] == ["a", "b"]


def test_the_stacks_of_a_tree_are_found() -> None:
    assert stacks_of(lock(), tree(3).get) == [""]
    assert stacks_of(lock(), tree(1).get) == ["default"]
    assert stacks_of(lock(), tree(0).get) == []


def test_a_patch_taken_back_by_a_later_one_leaves_both_counts_open() -> None:
    chain = chain_of(["p", "q"], {}, {"a": A0}, [{"a": A1}, {"a": A0}])
    both = Lock(LockedPin("v1", "m"), SHA, (("p", SHA), ("q", SHA)), {}, chain, {})
    state = classify(both, None, {"a": A0}.get)
    assert state.counts == (0, 2)
    assert classify(both, None, {"a": A1}.get).kind == "upto"


def test_an_unlocked_stack_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        ask(tree(0), "no-such-stack")
