from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.engine.model import blob_id
from patchkit.errors import EnvironmentFault
from patchkit.store import Store
from patchkit.store.delta import between
from patchkit.store.pack import Pack, object_id


def pack_of(store: Store, level: int = 0) -> Pack:
    return Pack(os.path.join(store.git_dir, "objects", "pack"), level=level)


@pytest.mark.parametrize("level", [0, 1])
def test_git_reads_what_was_packed_and_finds_no_fault(store: Store, referee, level: int) -> None:
    contents = [b"", b"a", b"x" * 65_535, b"y" * 65_536, os.urandom(200_000), b"line\n" * 5000]
    pack = pack_of(store, level)
    ids = [pack.add("blob", data).hex() for data in contents]
    path = pack.close()
    assert path is not None
    assert ids == [blob_id(data) for data in contents]
    for oid, data in zip(ids, contents, strict=True):
        assert referee("cat-file", "blob", oid) == data
    referee("verify-pack", path)
    referee("fsck", "--strict", "--full")


def test_deltas_read_back_as_the_version_they_tell(store: Store, referee) -> None:
    versions = [b"".join(b"line %d\n" % n for n in range(3000))]
    for step in range(25):
        old = versions[-1]
        versions.append(old.replace(b"line %d\n" % (step * 7), b"changed %d\n" % step))
    pack = pack_of(store)
    last = pack.add("blob", versions[0])
    for old, new in itertools.pairwise(versions):
        delta = between(old, new)
        assert delta is not None
        oid = object_id("blob", new)
        pack.add_delta(oid, last, delta)
        last = oid
    path = pack.close()
    assert path is not None
    assert os.path.getsize(path) < 2 * len(versions[0])
    for version in versions:
        assert referee("cat-file", "blob", blob_id(version)) == version


def test_a_pack_is_invisible_until_it_is_closed(store: Store) -> None:
    pack = pack_of(store)
    oid = pack.add("blob", os.urandom(9 << 20)).hex()  # large enough to be spilt to disk already
    assert not store.has(oid)
    pack.abandon()
    assert not store.has(oid)
    assert os.listdir(pack.folder) == []


def test_an_empty_pack_leaves_nothing(store: Store) -> None:
    pack = pack_of(store)
    assert pack.close() is None
    assert os.listdir(pack.folder) == []


def test_packing_the_same_again_mends_a_damaged_pack(store: Store) -> None:
    pack = pack_of(store)
    oid = pack.add("blob", b"content " * 100).hex()
    path = pack.close()
    assert path is not None
    os.chmod(path, 0o644)
    with open(path, "r+b") as stream:
        stream.seek(30)
        stream.write(b"\xff" * 10)
    assert not store.has(oid)
    again = pack_of(store)
    again.add("blob", b"content " * 100)
    assert again.close() == path
    store.objects.close()
    assert store.has(oid)


def test_a_full_disk_is_named_and_leaves_no_pack(tmp_path: Path) -> None:
    code = f"""
import os, resource, sys
from patchkit.errors import EnvironmentFault
from patchkit.store import Store
with Store.open({str(tmp_path / "cache")!r}) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        store.import_tree([("a", 0o100644, os.urandom(6 << 20)), ("b", 0o100644, b"b")])
    except EnvironmentFault as fault:
        print(fault.findings[0].name)
    print(os.listdir(os.path.join(store.git_dir, "objects", "pack")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    assert done.stdout.split("\n")[:2] == ["disk", "[]"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000


def test_a_folder_that_is_gone_is_a_disk_fault(store: Store, tmp_path: Path) -> None:
    pack = Pack(str(tmp_path / "nowhere"))
    pack.add("blob", b"x")
    with pytest.raises(EnvironmentFault) as caught:
        pack.close()
    assert caught.value.findings[0].name == "disk"
