"""The sdist as source: verified, imported once, and what it must be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, REGULAR, File
from patchkit.errors import EnvironmentFault, Finding, PatchkitError, Refused
from patchkit.series.pins import Pin, Upstream
from patchkit.source import open_source
from patchkit.source.base import base_key, recalled_base
from patchkit.source.sdist import SdistSource
from patchkit.store import Store
from patchkit.upstreams import known

from .conftest import (
    COMMIT,
    FILES,
    GENERATED,
    NAME,
    SDIST,
    TRACKED,
    Web,
    index_page,
    pin_of,
    sha256,
    tar_of,
)


@pytest.fixture
def index(pip: Web) -> Web:
    pip.routes["/simple/demo/"] = index_page
    pip.routes[f"/files/{NAME}"] = SDIST
    return pip


def placed(store: Store, data: bytes = SDIST) -> None:
    """Put a sdist into the cache, as a download would."""
    folder = Path(store.root, "downloads")
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_bytes(data)


def refused(call: object, kind: type[PatchkitError] = Refused) -> tuple[Finding, ...]:
    with pytest.raises(kind) as caught:
        call()  # type: ignore[operator]
    return caught.value.findings


def expected(files: dict[str, tuple[int, bytes]]) -> dict[str, File]:
    return {p: File(d, EXECUTABLE if m & 0o100 else REGULAR) for p, (m, d) in files.items()}


def test_it_is_fetched_verified_and_imported(index: Web, store: Store, upstream: Upstream) -> None:
    base = open_source("sdist", upstream).tree(store, pin_of())
    assert (base.source, base.name, base.version) == ("sdist", NAME, "1.0")
    assert COMMIT.startswith(base.commit)
    tree = base.tree(store)
    assert {f.path for f in tree.walk()} == set(TRACKED)
    assert {p: tree.get(p) for p in TRACKED} == expected(TRACKED)
    assert base.generated == expected(GENERATED)
    assert base.gaps == base.drift == ()


def test_the_next_time_nothing_is_asked_and_nothing_is_read(
    index: Web, store: Store, upstream: Upstream
) -> None:
    first = SdistSource(upstream).tree(store, pin_of())
    asked = len(index.seen)
    os.unlink(os.path.join(store.root, "downloads", NAME))
    again = SdistSource(upstream, offline=True).tree(store, pin_of())
    assert len(index.seen) == asked
    assert again.tree_id == first.tree_id
    assert again.generated == expected(GENERATED)
    assert (again.version, again.commit, again.name) == (first.version, first.commit, first.name)


def test_offline_without_a_cache_says_what_to_do(store: Store, upstream: Upstream) -> None:
    call = lambda: SdistSource(upstream, offline=True).tree(store, pin_of())  # noqa: E731
    (finding,) = refused(call, EnvironmentFault)
    assert finding.name == "network"
    assert finding.next == "patchkit fetch --pin v1.0, with a network"


def test_a_file_in_the_cache_is_used_without_a_network(store: Store, upstream: Upstream) -> None:
    placed(store)
    assert SdistSource(upstream, offline=True).tree(store, pin_of()).version == "1.0"


def test_a_tampered_file_in_the_cache_is_never_used(
    index: Web, store: Store, upstream: Upstream
) -> None:
    placed(store, tar_of(FILES | {"evil.py": (0o644, b"x")}))
    offline = lambda: SdistSource(upstream, offline=True).tree(store, pin_of())  # noqa: E731
    (finding,) = refused(offline, EnvironmentFault)
    assert finding.name == "verify-failed"
    base = SdistSource(upstream).tree(store, pin_of())  # with a network it is fetched anew
    assert {f.path for f in base.tree(store).walk()} == set(TRACKED)


def test_another_digest_at_the_index_is_a_mismatch_before_any_download(
    index: Web, store: Store, upstream: Upstream
) -> None:
    index.routes["/simple/demo/"] = lambda handler: index_page(handler, "b" * 64)
    (finding,) = refused(lambda: SdistSource(upstream).tree(store, pin_of()))
    assert finding.name == "pin-mismatch"
    assert finding.found == "sha256:" + "b" * 64
    assert index.asked(f"/files/{NAME}") == 0


def test_a_release_of_another_version_is_named(store: Store, upstream: Upstream) -> None:
    other = FILES | {"PKG-INFO": (0o644, b"Name: demo\nVersion: 1.1\n\n")}
    data = tar_of(other)
    placed(store, data)
    (finding,) = refused(lambda: SdistSource(upstream, offline=True).tree(store, pin_of(data)))
    assert finding.name == "pin-mismatch"
    assert (finding.expected, finding.found) == ("version 1.0", "version 1.1")


def test_a_pin_of_another_name_is_named(store: Store, upstream: Upstream) -> None:
    placed(store)
    pin = pin_of(name="v1.1")
    (finding,) = refused(lambda: SdistSource(upstream, offline=True).tree(store, pin))
    assert (finding.name, finding.expected) == ("pin-mismatch", "version 1.1")


def test_a_pin_of_another_commit_is_named_and_so_is_all_else(
    store: Store, upstream: Upstream
) -> None:
    placed(store)
    SdistSource(upstream, offline=True).tree(store, pin_of())  # imported: the check is not cached
    pin = pin_of(name="v1.1", commit="d" * 40)
    findings = refused(lambda: SdistSource(upstream, offline=True).tree(store, pin))
    assert [f.name for f in findings] == ["pin-mismatch", "pin-mismatch"]
    assert findings[1].expected == "commit " + "d" * 40


def test_the_beginning_of_a_commit_is_enough(store: Store, upstream: Upstream) -> None:
    placed(store)
    pin = pin_of(commit="", commit_prefix=COMMIT[:9])
    assert SdistSource(upstream, offline=True).tree(store, pin).version == "1.0"
    pin = pin_of(commit="", commit_prefix="d" * 9)
    assert refused(lambda: SdistSource(upstream, offline=True).tree(store, pin))


def test_a_pin_without_a_sdist_is_incomplete(store: Store, upstream: Upstream) -> None:
    pin = Pin("v1.0", "demo", commit=COMMIT, files={"demo-1.0-py3-none-any.whl": "0" * 64})
    (finding,) = refused(lambda: SdistSource(upstream).tree(store, pin))
    assert finding.name == "pin-incomplete"
    assert finding.next == "patchkit pin v1.0 --complete"


def test_an_archive_may_be_given_if_it_is_the_pinned_one(
    store: Store, upstream: Upstream, tmp_path: Path
) -> None:
    archive = tmp_path / NAME
    archive.write_bytes(SDIST)
    assert open_source(str(archive), upstream).tree(store, pin_of()).version == "1.0"
    archive.write_bytes(tar_of(FILES | {"README.md": (0o644, b"edited")}))
    (finding,) = refused(lambda: open_source(str(archive), upstream).tree(store, pin_of()))
    assert finding.name == "pin-mismatch"


def test_a_hostile_archive_leaves_no_record(store: Store, upstream: Upstream) -> None:
    import tarfile

    link = tarfile.TarInfo("demo-1.0/x")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    data = tar_of(FILES, "demo-1.0", link)
    placed(store, data)
    for _ in range(2):
        (finding,) = refused(lambda: SdistSource(upstream, offline=True).tree(store, pin_of(data)))
        assert finding.name == "path-escape"
    assert os.listdir(os.path.join(store.git_dir, "objects", "pack")) == []


def test_a_base_that_is_damaged_in_the_store_is_imported_again(
    store: Store, upstream: Upstream
) -> None:
    placed(store)
    base = SdistSource(upstream, offline=True).tree(store, pin_of())
    for pack in Path(store.git_dir, "objects", "pack").glob("*.pack"):
        os.chmod(pack, 0o644)
        pack.write_bytes(pack.read_bytes()[:40] + b"\0" * 400)
    store.objects.close()
    again = SdistSource(upstream, offline=True).tree(store, pin_of())
    assert again.tree_id == base.tree_id
    assert store.verify(again.tree_id) == ()


def test_eight_processes_that_want_it_at_once_get_the_same(
    index: Web, upstream: Upstream, tmp_path: Path
) -> None:
    code = (
        "import sys\nfrom patchkit.series.pins import Pin, Upstream\n"
        "from patchkit.source import open_source\nfrom patchkit.store import Store\n"
        f"pin = Pin('v1.0', 'demo', commit={COMMIT!r}, files={dict(pin_of().files)!r})\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    base = open_source('sdist', Upstream('demo', 'plain', pypi='demo')).tree(store, pin)\n"
        "    print(base.tree_id, len(base.generated), store.verify(base.tree_id))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "new")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [p.returncode for p in running] == [0] * 8, outputs
    assert len({out for out, _ in outputs}) == 1
    assert outputs[0][0].endswith(" 4 ()\n")
    assert index.asked(f"/files/{NAME}") == 1


def test_progress_is_told(index: Web, store: Store, upstream: Upstream) -> None:
    labels: list[str] = []
    SdistSource(upstream).tree(store, pin_of(), lambda label, done, total=0: labels.append(label))
    assert labels[0] == f"find {NAME}"
    assert f"fetch {NAME}" in labels


def test_a_base_that_another_version_recorded_is_imported_again(
    index: Web, store: Store, upstream: Upstream
) -> None:
    first = SdistSource(upstream).tree(store, pin_of())
    key = base_key(known(upstream), "sdist", sha256(SDIST))
    assert store.cached(key) is not None
    for text in ("no JSON", "{}", "[]"):
        store.remember(key, (first.tree_id,), text)
        assert SdistSource(upstream).tree(store, pin_of()).tree_id == first.tree_id
        assert recalled_base(store, key, "sdist") is not None


def test_what_is_no_file_in_the_place_of_a_download_is_not_waited_for(
    store: Store, upstream: Upstream
) -> None:
    (Path(store.root) / "downloads").mkdir()
    os.mkfifo(Path(store.root) / "downloads" / NAME)
    with pytest.raises(EnvironmentFault) as caught:
        SdistSource(upstream, offline=True).tree(store, pin_of())
    assert "it is no file" in caught.value.findings[0].message
