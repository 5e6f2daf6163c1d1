from __future__ import annotations

import pytest

from patchkit.engine.model import EXECUTABLE, GITLINK, SYMLINK, File, MemoryTree
from patchkit.errors import EnvironmentFault
from patchkit.store import Missing, Store

from .conftest import imported

FILES = {
    "README": File(b"hello\n"),
    "pkg/__init__.py": File(b""),
    "pkg/sub/__init__.py": File(b"x = 1\n"),
    "pkg/sub/run.sh": File(b"#!/bin/sh\n", EXECUTABLE),
    "pkg/link": File(b"sub/run.sh", SYMLINK),
    "pkg/\udcff\udcfe": File(b"odd name\n"),
    "pkg/init__.py": File(b"a name that ends like another\n"),
}


def test_it_answers_as_a_tree_in_memory_does(store: Store) -> None:
    tree, model = store.tree(imported(store, FILES)), MemoryTree(FILES)
    asked = [*FILES, "", "pkg", "pkg/sub", "nothing", "pkg/nothing", "README/x", "pkg/sub/"]
    for path in asked:
        assert tree.get(path) == model.get(path), path
        if not path.endswith("/"):
            assert tree.is_folder(path) == model.is_folder(path), path
    for name in ("__init__.py", "init__.py", "run.sh", "\udcff\udcfe", "sub", "", "pkg/link"):
        assert tree.named(name) == model.named(name) or "/" in name, name


def test_a_file_knows_its_id_without_being_hashed_again(store: Store) -> None:
    found = store.tree(imported(store, FILES)).get("README")
    assert found is not None
    assert found.__dict__["oid"] == File(b"hello\n").oid


def test_walk_lists_every_file_once_with_mode_and_id(store: Store) -> None:
    tree = store.tree(imported(store, FILES))
    assert {f.path: (f.mode, f.oid) for f in tree.walk()} == {
        p: (f.mode, f.oid) for p, f in FILES.items()
    }
    assert [f.path for f in tree.walk("pkg/sub")] == ["pkg/sub/__init__.py", "pkg/sub/run.sh"]
    assert {f.path: data for f, data in tree.contents(tree.walk())} == {
        p: f.data for p, f in FILES.items()
    }


def test_prefetch_reads_only_what_is_there(store: Store) -> None:
    tree = store.tree(imported(store, FILES))
    tree.prefetch([*FILES, "nothing", "pkg"])
    store.objects.close()  # from here on every answer must come from memory
    assert tree.get("pkg/link") == FILES["pkg/link"]


def test_a_submodule_has_a_mode_and_no_content(store: Store) -> None:
    oid = store.import_tree([("sub", GITLINK, b"1" * 40), ("a", 0o100644, b"a")])
    tree = store.tree(oid)
    found = tree.get("sub")
    assert found is not None
    assert (found.mode, found.oid, found.data) == (GITLINK, "1" * 40, b"")
    assert [data for _, data in tree.contents(tree.walk())] == [b"a", b""]
    assert store.verify(oid) == ()


def test_blobs_that_are_missing_are_asked_for_once_in_a_batch(store: Store, referee) -> None:
    lines = b"".join(b"100644 blob %s\t%s\n" % (File(n).oid.encode(), n) for n in (b"a", b"b"))
    oid = referee("mktree", "--missing", input=lines).decode().strip()
    asked: list[list[str]] = []

    def fetch(oids) -> None:  # type: ignore[no-untyped-def]
        asked.append(list(oids))
        for name in (b"a", b"b"):
            referee("hash-object", "-w", "--stdin", input=name)

    with pytest.raises(Missing) as caught:
        store.tree(oid).get("a")
    assert caught.value.findings[0].expected == File(b"a").oid
    tree = store.tree(oid, fetch)
    tree.prefetch(["a", "b"])
    assert [sorted(a) for a in asked] == [sorted([File(b"a").oid, File(b"b").oid])]
    assert tree.get("b") == File(b"b")


def test_a_tree_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        store.tree("1" * 40).get("a")
    assert caught.value.findings[0].name == "verify-failed"
    assert caught.value.findings[0].expected == "1" * 40


def test_what_two_trees_differ_in_is_what_their_lists_differ_in(store: Store) -> None:
    one = store.tree(imported(store, FILES))
    other = dict(FILES)
    del other["pkg/link"]
    other["README"] = File(b"hello\n", EXECUTABLE)
    other["pkg/sub/new/deep.py"] = File(b"new\n")
    other["pkg/sub/__init__.py"] = File(b"x = 2\n")
    del other["pkg/init__.py"]
    other["pkg/init__.py/a"] = File(b"a folder where a file was\n")
    two = store.tree(imported(store, other))
    for old, new, before, after in ((one, two, FILES, other), (two, one, other, FILES)):
        found = dict(old.differing(new))
        assert found == {
            path: path not in before or path not in after
            for path in {*before, *after}
            if before.get(path) != after.get(path)
        }
    assert list(one.differing(one)) == []
    assert (two.has_folder("pkg/init__.py"), one.has_folder("pkg/init__.py")) == (True, False)
    assert not two.has_folder("pkg/nothing")
