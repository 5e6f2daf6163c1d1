"""Base wheels that must not be built on: each refused by name, nothing written."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.build.content import check_record, read_all
from patchkit.build.wheelfile import open_wheel
from patchkit.errors import Refused
from tests.unit.build import wheels


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "engine").mkdir(parents=True)
    (folder / "engine" / "__init__.py").write_text("X = 1\n" * 500)
    return folder


def refusal(path: Path, sha256: str | None = None) -> str:
    """The name of the finding with which the wheel is refused."""
    digest = sha256 or hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(Refused) as caught, open_wheel(str(path), digest) as wheel:
        check_record(wheel, read_all(wheel))
    return caught.value.findings[0].name


def test_an_honest_wheel_is_read_whole(base: Path, tmp_path: Path) -> None:
    path, digest = wheels.wheel(tmp_path, base)
    with open_wheel(str(path), digest) as wheel:
        contents = read_all(wheel)
        check_record(wheel, contents)
        assert contents["engine/__init__.py"].sha256 == hashlib.sha256(b"X = 1\n" * 500).hexdigest()
        assert b"".join(wheel.packed(wheel.members["engine/__init__.py"]))


def test_one_changed_byte_is_another_wheel(base: Path, tmp_path: Path) -> None:
    path, digest = wheels.wheel(tmp_path, base)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    assert refusal(path, digest) == "verify-failed"


def test_a_changed_byte_is_found_even_where_the_digest_is_that_of_the_changed_file(
    base: Path, tmp_path: Path
) -> None:
    files = wheels.sealed(wheels.files_of(base))
    files["engine/__init__.py"] += b"#"
    path, _ = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", files)
    assert refusal(path) == "verify-failed"


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.999])
def test_a_truncated_wheel(base: Path, tmp_path: Path, keep: float) -> None:
    path, _ = wheels.wheel(tmp_path, base)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep) if keep > 1 else int(len(data) * keep)])
    assert refusal(path) == "verify-failed"


@pytest.mark.parametrize(
    "name", ["../engine/x.py", "/etc/x", "engine/../../x.py", "C:/x.py", "engine\\..\\x.py"]
)
def test_a_member_that_leaves_the_wheel(base: Path, tmp_path: Path, name: str) -> None:
    files = {**wheels.files_of(base), name: b"x"}
    path, _ = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", wheels.sealed(files))
    assert refusal(path) == "path-escape"


def test_a_zip_bomb_is_refused_before_it_is_expanded(base: Path, tmp_path: Path) -> None:
    files = {**wheels.files_of(base), "engine/big": bytes(200 << 20)}
    path, _ = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", files | _record())
    assert path.stat().st_size < 1 << 20
    assert refusal(path) == "too-large"


def _record() -> dict[str, bytes]:
    return {"engine-1.0.dist-info/RECORD": b"engine-1.0.dist-info/RECORD,,\n"}


def _overlapping(files: dict[str, bytes]) -> bytes:
    """Two directory entries that share one member's bytes."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.filelist.append(archive.filelist[0])
    return body.getvalue()


def _linked(files: dict[str, bytes]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        info = zipfile.ZipInfo("engine/link.py")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    return body.getvalue()


def _two_infos(files: dict[str, bytes]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in {**files, "other-1.0.dist-info/RECORD": b""}.items():
            archive.writestr(name, data)
    return body.getvalue()


@pytest.mark.parametrize("make", [_overlapping, _linked, _two_infos])
def test_what_no_honest_wheel_holds(
    base: Path, tmp_path: Path, make: Callable[[dict[str, bytes]], bytes]
) -> None:
    path = tmp_path / "engine-1.0-py3-none-any.whl"
    path.write_bytes(make(wheels.sealed(wheels.files_of(base))))
    assert refusal(path) == "unsupported"


def test_a_wheel_without_a_record(base: Path, tmp_path: Path) -> None:
    path, _ = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", wheels.files_of(base))
    assert refusal(path) == "unsupported"


@pytest.mark.parametrize("name", ["engine/__init__.py/x.py", "engine/_C.abi3.so/a/b.py"])
def test_a_member_below_another_member_can_be_written_by_no_installer(
    base: Path, tmp_path: Path, name: str
) -> None:
    files = wheels.sealed({name: b"1", **wheels.files_of(base)})
    path, _ = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", files)
    assert refusal(path) == "unsupported"
