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
    parts = {u.name: u for u in cache.usage(root)}
    assert parts["downloads"].files == 1
    assert parts["downloads"].size >= 5000
    assert parts["store-1.git"].files > 3
    assert parts["results"].files >= 1
    assert cache.clear(root) == list(parts.values())
    assert all(u.files == 0 for u in cache.usage(root))


def test_a_folder_in_which_somebody_keeps_other_things_is_not_cleared(tmp_path: Path) -> None:
    with Store.open(tmp_path):
        pass
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "mine.txt").write_text("not ours")
    (tmp_path / "notes.txt").write_text("not ours")
    with pytest.raises(EnvironmentFault) as caught:
        cache.clear(str(tmp_path))
    assert caught.value.findings[0].found == "notes.txt"
    assert (tmp_path / "build" / "mine.txt").exists()
    assert (tmp_path / "store-1.git").exists()
    (tmp_path / "notes.txt").unlink()
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "CACHEDIR.TAG").write_text("")
    cache.clear(str(tmp_path))
    assert not (tmp_path / "store-1.git").exists()


def test_stores_of_other_versions_are_shown_and_freed(tmp_path: Path) -> None:
    (tmp_path / "store-2.git" / "objects").mkdir(parents=True)
    (tmp_path / "store-2.git" / "objects" / "x").write_bytes(b"x" * 9000)
    (shown,) = [u for u in cache.usage(str(tmp_path)) if u.name == "store-2.git"]
    assert shown.size >= 9000
    assert "another version" in shown.what
    cache.clear(str(tmp_path))
    assert not (tmp_path / "store-2.git").exists()


def test_a_part_that_is_a_link_or_a_file_is_removed_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    root = tmp_path / "cache"
    root.mkdir()
    (root / "downloads").symlink_to(elsewhere)
    (root / "store-1.git").write_text("no folder")
    cache.clear(str(root))
    assert sorted(p.name for p in root.iterdir()) == ["in-use"]
    assert (elsewhere / "kept").exists()


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
