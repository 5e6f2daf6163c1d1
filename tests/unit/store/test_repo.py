"""The store as a whole: damage is found, many processes share it, a kill loses nothing."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from patchkit.engine.model import File
from patchkit.errors import EnvironmentFault, Refused
from patchkit.store import Commit, Store

from .conftest import imported

FILES = {f"pkg/m{n}.py": File(b"# module %d\n" % n * 50) for n in range(40)}


def rewrite_as_loose(store: Store, oid: str, content: bytes) -> None:
    """Put another content under a blob's id, as a careless or hostile hand would."""
    at = Path(store.git_dir, "objects", oid[:2], oid[2:])
    at.parent.mkdir(exist_ok=True)
    at.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content))
    for pack in Path(store.git_dir, "objects", "pack").iterdir():
        os.chmod(pack, 0o644)
    store.objects.close()


def unpacked(store: Store) -> None:
    """Every object as a file of its own, so that one of them can be changed."""
    packs = Path(store.git_dir, "objects", "pack")
    for pack in list(packs.glob("*.pack")):
        aside = pack.rename(packs.parent / pack.name)
        pack.with_suffix(".idx").unlink()
        subprocess.run(
            ["git", f"--git-dir={store.git_dir}", "unpack-objects", "-q"],
            stdin=aside.open("rb"),
            check=True,
        )
        aside.unlink()
    store.objects.close()


def test_a_base_file_changed_in_the_cache_is_found_by_name(store: Store) -> None:
    tree = imported(store, FILES)
    assert store.verify(tree) == ()
    unpacked(store)
    rewrite_as_loose(store, FILES["pkg/m7.py"].oid, b"tampered\n")
    (finding,) = store.verify(tree)
    assert (finding.name, finding.where.file) == ("verify-failed", "pkg/m7.py")
    assert finding.expected == FILES["pkg/m7.py"].oid
    assert finding.found == f"blob {File(b'tampered' + bytes([10])).oid}"


def test_a_changed_file_is_never_given_out(store: Store) -> None:
    tree = imported(store, FILES)
    unpacked(store)
    rewrite_as_loose(store, FILES["pkg/m7.py"].oid, b"tampered\n")
    opened = store.tree(tree)
    with pytest.raises(EnvironmentFault) as caught:
        opened.get("pkg/m7.py")
    assert caught.value.findings[0].name == "verify-failed"
    assert opened.get("pkg/m8.py") == FILES["pkg/m8.py"]
    with pytest.raises(EnvironmentFault):
        opened.prefetch(FILES)


def test_every_missing_or_damaged_object_is_named(store: Store) -> None:
    tree = imported(store, FILES)
    unpacked(store)
    gone = FILES["pkg/m3.py"].oid
    Path(store.git_dir, "objects", gone[:2], gone[2:]).unlink()
    cut = FILES["pkg/m5.py"].oid
    loose = Path(store.git_dir, "objects", cut[:2], cut[2:])
    os.chmod(loose, 0o644)
    loose.write_bytes(loose.read_bytes()[:-8])
    found = {f.where.file: f.found for f in store.verify(tree)}
    assert set(found) == {"pkg/m3.py", "pkg/m5.py"}
    assert found["pkg/m3.py"] == "no such object"


def test_replaced_objects_of_the_repository_are_not_believed(store: Store, referee) -> None:
    tree, other = imported(store, FILES), imported(store, {"evil": File(b"x")})
    referee("replace", tree, other)
    assert store.tree(tree).get("pkg/m7.py") == FILES["pkg/m7.py"]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ([("../x", 0o100644, b"")], "path-escape"),
        ([("a/.GIT/config", 0o100644, b"")], "path-escape"),
        ([("a", 0o100644, b"1"), ("a", 0o100644, b"2")], "unsupported"),
        ([("a", 0o100644, b"1"), ("a/b", 0o100644, b"2")], "unsupported"),
        ([("a/b", 0o100644, b"1"), ("a", 0o100644, b"2")], "unsupported"),
        ([("a", 0o100600, b"1")], "unsupported"),
    ],
    ids=["escape", "dot-git", "twice", "file-then-folder", "folder-then-file", "mode"],
)
def test_a_tree_that_may_not_be_is_refused_whole(
    store: Store, files: list[tuple[str, int, bytes]], name: str
) -> None:
    with pytest.raises(Refused) as caught:
        store.import_tree([("fine", 0o100644, b"fine"), *files])
    assert caught.value.findings[0].name == name
    assert not store.has(File(b"fine").oid)


def test_a_gc_by_hand_loses_nothing(store: Store, referee) -> None:
    tree = imported(store, FILES)
    referee("gc", "--quiet")
    store.objects.close()
    assert store.verify(tree) == ()


def test_an_open_that_was_killed_is_done_again(tmp_path: Path) -> None:
    (tmp_path / "store-1.git").mkdir()
    with Store.open(tmp_path) as store:
        assert store.has(store.import_tree([("a", 0o100644, b"a")]))


def test_a_reader_that_was_left_in_the_middle_does_not_mix_answers(store: Store) -> None:
    tree = store.tree(imported(store, FILES))
    contents = tree.contents(tree.walk())
    next(contents)
    contents.close()
    assert store.tree(tree.oid).get("pkg/m9.py") == FILES["pkg/m9.py"]


def test_a_reader_whose_git_is_killed_says_so_and_starts_again(store: Store) -> None:
    tree = imported(store, FILES)
    assert store.has(tree)
    process = store.objects._process
    assert process is not None
    process.kill()
    process.wait()
    with pytest.raises(EnvironmentFault) as caught:
        store.objects.read(tree, "tree")
    assert caught.value.findings[0].name == "git"
    assert store.objects.read(tree, "tree")


def test_many_small_packs_are_joined_and_nothing_is_lost(
    store: Store, referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchkit.store.repo._MANY_PACKS", 5)
    folder = Path(store.git_dir, "objects", "pack")
    left = folder / "tmp_pack_1_killed"
    left.write_bytes(b"of a process that was killed")
    os.utime(left, (1, 1))
    base = imported(store, FILES)
    trees = [store.write_tree(base, {"new": File(b"%d" % n)}) for n in range(9)]
    assert len(list(folder.glob("*.idx"))) <= 6
    assert not left.exists()
    store.objects.close()
    for tree in [base, *trees]:
        assert store.verify(tree) == ()
    referee("fsck", "--full", "--strict")


_WORKER = """
import sys, random
from patchkit.engine.model import File
from patchkit.store import Commit, Result, Store, key_of
root, seed = sys.argv[1], int(sys.argv[2])
with Store.open(root) as store:
    base = store.import_tree((f"p/{n}", 0o100644, b"%d" % n * 999) for n in range(60))
    for turn in range(int(sys.argv[3])):
        steps = [Commit({f"p/{n}": File(b"%d %d %d" % (seed, turn, n))}) for n in range(20)]
        chain = store.commit_chain(base, steps, Commit({}))
        keys = [key_of("shared", str(n)) for n in range(20)] + [key_of(str(seed), str(turn))]
        store.remember_all("group", {k: Result((chain.commit, chain.tree)) for k in keys[20:]})
    own = [key_of(str(seed), str(turn)) for turn in range(int(sys.argv[3]))]
    assert all(store.cached(k, "group") for k in own), "a result was lost"
    print(base, chain.commit)
"""


def test_eight_processes_at_once_share_one_new_cache(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(tmp_path / "c"), str(seed), "3"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in [1, 1, 2, 3, 4, 5, 6, 7]
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [p.returncode for p in running] == [0] * 8, outputs
    assert len({out.split()[0] for out, _ in outputs}) == 1
    assert outputs[0][0] == outputs[1][0]
    with Store.open(tmp_path / "c") as store:
        subprocess.run(
            ["git", f"--git-dir={store.git_dir}", "fsck", "--full", "--strict"], check=True
        )


def until_alone(group: int) -> None:
    """Wait for what a killed process left running: fsck must not look while git joins packs."""
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)


def test_a_kill_at_any_moment_leaves_a_whole_store(tmp_path: Path) -> None:
    chance = random.Random(7)
    with Store.open(tmp_path / "c"):
        pass
    for turn in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(tmp_path / "c"), str(turn), "500"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(0.15 + chance.random() * 0.35)
        process.send_signal(signal.SIGKILL)
        process.wait()
        until_alone(process.pid)
    with Store.open(tmp_path / "c") as store:
        subprocess.run(
            ["git", f"--git-dir={store.git_dir}", "fsck", "--full", "--strict"], check=True
        )
        # What a result names is there: results are written after the objects.
        known = store.results.read("group")
        assert all(store.cached(key, "group") for key in known)
        chain = store.commit_chain(imported(store, FILES), [Commit({"a": File(b"a")})], Commit({}))
        assert store.verify(chain.tree) == ()


@pytest.mark.parametrize("name", ["config", "HEAD", "refs", "objects", "patchkit"])
def test_a_repository_that_lost_a_part_is_made_whole(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path) as store:
        tree = store.import_tree([("a", 0o100644, b"a")])
    lost = tmp_path / "store-1.git" / name
    if lost.is_dir():
        shutil.rmtree(lost)
    else:
        lost.unlink()
    with Store.open(tmp_path) as store:
        assert store.has(tree) is (name != "objects")
        assert store.import_tree([("a", 0o100644, b"a")]) == tree
        assert store.has(tree)


def test_what_somebody_wrote_into_the_configuration_is_not_obeyed(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        tree = store.import_tree([("a", 0o100644, b"a")])
        config = Path(store.git_dir) / "config"
    right = config.read_bytes()
    for text in ("[nonsense\n", "[core]\n\trepositoryformatversion = 9\n", ""):
        config.write_text(text)
        with Store.open(tmp_path) as store:
            assert store.has(tree)
        assert config.read_bytes() == right
