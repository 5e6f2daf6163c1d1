"""A series folder: read whole, every fault in one run, nothing outside it ever opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.errors import Refused
from patchkit.series.folder import proof_digests, read_series

PATCH = b"""\
Subject: Add b

---
diff --git a/f b/f
--- a/f
+++ b/f
@@ -1 +1,2 @@
 a
+b
"""


def folder(where: Path, series: str, **patches: bytes) -> Path:
    at = where / "v0.30.0"
    at.mkdir()
    (at / "series").write_bytes(series.encode())
    for name, data in patches.items():
        (at / f"{name}.patch").write_bytes(data)
    return at


def names(caught: pytest.ExceptionInfo[Refused]) -> list[tuple[str, str | None]]:
    return [(f.name, f.where.patch) for f in caught.value.findings]


def test_patches_and_headers_stand_in_series_order(tmp_path: Path) -> None:
    at = folder(tmp_path, "b.patch\na.patch -p0 #+x\n", a=PATCH, b=PATCH.replace(b"Add", b"Put"))
    series = read_series(at)
    assert series.pin == "v0.30.0"
    assert [e.patch for e in series.entries] == ["b.patch", "a.patch"]
    assert [p.name for p in series.patches] == ["b.patch", "a.patch"]
    assert [h.subject for h in series.headers] == ["Put b", "Add b"]
    assert series.selected([]) == (True, False)
    assert series.selected(["x"]) == series.selected(None) == (True, True)
    assert series.findings == ()


def test_a_patch_in_a_sub_folder_is_found(tmp_path: Path) -> None:
    at = folder(tmp_path, "d/a.patch\n")
    (at / "d").mkdir()
    (at / "d" / "a.patch").write_bytes(PATCH)
    assert read_series(at).patches[0].data == PATCH


def test_unlisted_patch_files_are_reported_and_not_read(tmp_path: Path) -> None:
    at = folder(tmp_path, "#loud.patch\na.patch\n", a=PATCH, b=b"rubbish")
    (at / "#loud.patch").write_bytes(PATCH)
    (at / "proofs").mkdir()
    (at / "proofs" / "m.diff").write_bytes(b"x")
    series = read_series(at)
    assert series.unlisted == ("#loud.patch", "b.patch")
    assert all(f.note and f.name == "unused" for f in series.findings)
    assert "not in the series" in series.findings[0].message


def test_an_empty_series_is_a_note(tmp_path: Path) -> None:
    series = read_series(folder(tmp_path, "# none yet\n"))
    assert series.patches == ()
    assert [(f.name, f.note) for f in series.findings] == [("unused", True)]


def test_every_patch_that_cannot_be_read_is_named_in_one_run(tmp_path: Path) -> None:
    at = folder(tmp_path, "a.patch\ngone.patch\nbad.patch\n", a=PATCH, bad=b"only prose\n")
    with pytest.raises(Refused) as caught:
        read_series(at)
    assert names(caught) == [("missing-patch", "gone.patch"), ("no-diff", "bad.patch")]
    assert "line 2" in caught.value.findings[0].message


def test_reading_on_leaves_bad_patches_out_and_says_so(tmp_path: Path) -> None:
    at = folder(tmp_path, "bad.patch\na.patch\n", a=PATCH, bad=b"only prose\n")
    series = read_series(at, strict=False)
    assert [e.patch for e in series.entries] == ["a.patch"]
    assert [(f.name, f.where.patch) for f in series.refused] == [("no-diff", "bad.patch")]


def test_a_folder_without_series_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no series file"):
        read_series(tmp_path)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_are_not_followed(tmp_path: Path, what: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a.patch").write_bytes(PATCH)
    at = folder(tmp_path, "d/a.patch\n")
    if what == "folder":
        (at / "d").symlink_to(tmp_path / "secrets")
    else:
        (at / "d").mkdir()
        (at / "d" / "a.patch").symlink_to(tmp_path / "secrets" / "a.patch")
    with pytest.raises(Refused) as caught:
        read_series(at)
    assert [n for n, _ in names(caught)] == ["symlink-in-path"]


def test_a_fifo_does_not_hang_and_a_folder_is_no_patch(tmp_path: Path) -> None:
    at = folder(tmp_path, "a.patch\nb.patch\n")
    os.mkfifo(at / "a.patch")
    (at / "b.patch").mkdir()
    with pytest.raises(Refused) as caught:
        read_series(at)
    assert [n for n, _ in names(caught)] == ["missing-patch", "missing-patch"]


def test_proofs_are_digested_without_their_results(tmp_path: Path) -> None:
    at = folder(tmp_path, "a.patch\n", a=PATCH)
    assert proof_digests(at) == {}
    for name in ("test_a.py", "results/x.json", "a.mutants/1.diff", "__pycache__/x.pyc"):
        path = at / "proofs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert list(proof_digests(at)) == ["proofs/a.mutants/1.diff", "proofs/test_a.py"]
