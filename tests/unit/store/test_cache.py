from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.store import Store, cache


def test_the_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "x"))
    assert cache.cache_root() == str(tmp_path / "x")
    monkeypatch.setenv("PATCHKIT_CACHE", "~/y")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_root() == str(tmp_path / "y")


def test_without_it_the_users_cache_folder_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PATCHKIT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert cache.cache_root().endswith("patchkit")
    assert cache.cache_root().startswith(str(tmp_path))


def test_usage_counts_and_clear_empties(tmp_path: Path) -> None:
    root = str(tmp_path)
    with Store.open(root) as store:
        store.import_tree([("a", 0o100644, b"a" * 10_000)])
        store.remember("k", ())
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "x.tar.gz").write_bytes(b"x" * 5000)
    (tmp_path / "of-the-user.txt").write_text("not ours")
    parts = {u.name: u for u in cache.usage(root)}
    assert parts["downloads"].files == 1
    assert parts["downloads"].size >= 5000
    assert parts["store-1.git"].files > 3
    assert parts["results"].files >= 1
    assert cache.clear(root) == list(parts.values())
    assert all(u.files == 0 for u in cache.usage(root))
    assert (tmp_path / "of-the-user.txt").read_text() == "not ours"


def test_a_cache_in_use_is_not_cleared(tmp_path: Path) -> None:
    with Store.open(tmp_path), Store.open(tmp_path):
        with pytest.raises(EnvironmentFault) as caught:
            cache.clear(str(tmp_path))
        assert "another patchkit" in caught.value.findings[0].message
    cache.clear(str(tmp_path))
    assert not (tmp_path / "store-1.git").exists()


def test_a_cleared_cache_is_made_again(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        tree = store.import_tree([("a", 0o100644, b"a")])
    cache.clear(str(tmp_path))
    with Store.open(tmp_path) as store:
        assert not store.has(tree)
        assert store.import_tree([("a", 0o100644, b"a")]) == tree


def test_clearing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    assert all(u.files == 0 for u in cache.clear(str(tmp_path / "nowhere")))
