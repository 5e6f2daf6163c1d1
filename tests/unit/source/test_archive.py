"""An archive is somebody else's: nothing in it is believed."""

from __future__ import annotations

import gzip
import io
import os
import resource
import tarfile
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK
from patchkit.errors import Refused
from patchkit.source.archive import Limits, read_sdist

from .conftest import FILES, SDIST, tar_of


def member(name: str, kind: bytes = tarfile.REGTYPE, **values: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in values.items():
        setattr(info, key, value)
    return info


def read(tmp_path: Path, data: bytes, limits: Limits | None = None) -> dict[str, tuple[int, bytes]]:
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(data)
    return {p: (mode, content) for p, mode, content in read_sdist(str(path), limits)}


def refusal(tmp_path: Path, data: bytes, limits: Limits | None = None) -> tuple[str, str | None]:
    with pytest.raises(Refused) as caught:
        read(tmp_path, data, limits)
    (finding,) = caught.value.findings
    return finding.name, finding.where.file


def test_files_come_with_gits_modes_and_without_the_top_folder(tmp_path: Path) -> None:
    found = read(tmp_path, SDIST)
    assert found == {
        path: (EXECUTABLE if mode & 0o100 else REGULAR, data)
        for path, (mode, data) in FILES.items()
    }


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "demo-1.0/../../x",
        "../x",
        "demo-1.0/a/../../../x",
        "demo-1.0/.git/hooks/post-checkout",
        "demo-1.0/.GIT/config",
        "demo-1.0/git~1/config",
        "demo-1.0/a\nb",
        "demo-1.0/a\\..\\..\\b",
        "C:/x",
        "other/x",
        "demo-1.0",
        "x" * 300 + "/y",
        "demo-1.0/" + "d/" * 200 + "x",
    ],
)
def test_a_name_that_leaves_or_misleads_is_refused(tmp_path: Path, name: str) -> None:
    found, where = refusal(tmp_path, tar_of(FILES, "demo-1.0", member(name, size=1)))
    assert found == "path-escape"
    assert where is not None


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "a/../../../x", ""])
def test_a_link_that_leaves_is_refused(tmp_path: Path, target: str) -> None:
    link = member("demo-1.0/demo/link", tarfile.SYMTYPE, linkname=target)
    assert refusal(tmp_path, tar_of(FILES, "demo-1.0", link))[0] == "path-escape"


def test_a_link_inside_is_an_entry_and_is_not_followed(tmp_path: Path) -> None:
    link = member("demo-1.0/demo/link", tarfile.SYMTYPE, linkname="../tools/./run.sh")
    found = read(tmp_path, tar_of(FILES, "demo-1.0", link))
    assert found["demo/link"] == (SYMLINK, b"../tools/./run.sh")


@pytest.mark.parametrize(
    "kind",
    [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_what_is_neither_file_nor_link_is_refused(tmp_path: Path, kind: bytes) -> None:
    odd = member("demo-1.0/odd", kind, linkname="demo-1.0/README.md")
    name, where = refusal(tmp_path, tar_of(FILES, "demo-1.0", odd))
    assert name == "unsupported"
    if kind != tarfile.GNUTYPE_SPARSE:
        assert where == "demo-1.0/odd"


def test_more_members_than_allowed_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, SDIST, Limits(members=5))[0] == "too-large"


def test_a_file_larger_than_allowed_is_refused_before_it_is_read(tmp_path: Path) -> None:
    assert refusal(tmp_path, SDIST, Limits(file=100)) == (
        "too-large",
        "demo-1.0/demo/data/table.bin",
    )
    assert refusal(tmp_path, SDIST, Limits(total=300))[0] == "too-large"


def lying(size: int, kind: bytes) -> bytes:
    """An archive whose one header states `size` bytes, and that expands to zeros without end."""
    info = member("demo-1.0/x", kind, size=size)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as zipped:
        zipped.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(12):
            zipped.write(bytes(8 << 20))
    return out.getvalue()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_a_header_that_lies_takes_no_memory(tmp_path: Path, kind: bytes) -> None:
    data = lying(90 << 20, kind)
    assert len(data) < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(tmp_path, data)[0] == "too-large"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10  # KiB


@pytest.mark.parametrize("keep", [0, 1, 10, 200, 600, -1, -9])
def test_an_archive_that_was_cut_is_refused(tmp_path: Path, keep: int) -> None:
    assert refusal(tmp_path, SDIST[:keep])[0] == "unsupported"


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    for data in (b"<!DOCTYPE html><html>", gzip.compress(b"hello"), os.urandom(5000)):
        assert refusal(tmp_path, data)[0] == "unsupported"


def test_a_damaged_byte_in_the_middle_is_refused(tmp_path: Path) -> None:
    raw = bytearray(gzip.decompress(SDIST))
    raw[512 + 4] ^= 0xFF  # in the second header: its checksum does not hold
    assert refusal(tmp_path, gzip.compress(bytes(raw)))[0] == "unsupported"


def test_odd_names_come_through_byte_for_byte(tmp_path: Path) -> None:
    files = {"demo/\udcff b": (0o644, b"1"), "demo/é" + "x" * 120: (0o600, b"2")}
    assert read(tmp_path, tar_of(files)) == {p: (REGULAR, d) for p, (_, d) in files.items()}
