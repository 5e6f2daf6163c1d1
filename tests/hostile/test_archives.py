"""Tricks of tar and zip archives, through the verbs that read a source or a base wheel."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.conftest import LINES, Yard
from tests.unit.build import wheels
from tests.unit.source.conftest import tar_of

NAME = "demo-1.0.tar.gz"
FILES = {
    "demo/__init__.py": (0o644, b""),
    "PKG-INFO": (0o644, b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"),
}


def pinned(yard: Yard, data: bytes) -> Path:
    """A project whose pin is the sdist `data`; the sdist."""
    sdist = yard.file(f"sdists/{NAME}", data)
    yard.file(
        "mine/pins.toml",
        '[upstreams.demo]\nkind = "plain"\npypi = "demo"\npackage = "demo"\n'
        f'[pins."v1.0"]\nupstream = "demo"\n[pins."v1.0".files]\n'
        f'"{NAME}" = "sha256:{hashlib.sha256(data).hexdigest()}"\n',
    )
    yard.file("mine/series/v1.0/series", "")
    return sdist


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 1) -> bytes:
    """A sdist with one more member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o755
    info.size = size if kind == tarfile.REGTYPE else 0
    return tar_of(FILES, "demo-1.0", info)


def refusal(yard: Yard, data: bytes) -> set[str]:
    """With which names the sdist is refused, by each verb that reads one."""
    sdist = pinned(yard, data)
    found: set[str] = set()
    for line in (["fetch", "--pin", "v1.0"], ["lock", "--pin", "v1.0"]):
        found.update(yard.names(*line, "--source", str(sdist)))
    return found


@pytest.mark.parametrize(
    "name",
    [
        "../outside/new.py",
        "demo-1.0/../../outside/new.py",
        "/OUT/new.py",
        "demo-1.0/demo/..\\..\\..\\outside\\new.py",
        "C:/outside/new.py",
        "outside/new.py",
        "demo-1.0/.git/hooks/post-checkout",
        "demo-1.0/demo/.GIT/config",
    ],
)
def test_python_cve_2007_4559_names_that_leave(yard: Yard, name: str) -> None:
    data = member(name.replace("/OUT", str(yard.outside)))
    assert refusal(yard, data) == {"path-escape"}


@pytest.mark.parametrize(
    "target", ["../../outside", "/OUT", "demo/../../../outside", "../../outside/secret", ""]
)
def test_python_cve_2007_4559_links_that_leave(yard: Yard, target: str) -> None:
    data = member("demo-1.0/link", tarfile.SYMTYPE, target.replace("/OUT", str(yard.outside)))
    assert refusal(yard, data) == {"path-escape"}


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"9"])
def test_hard_links_devices_and_fifos(yard: Yard, kind: bytes) -> None:
    """A hard link to a file outside gives its bytes to whoever unpacks it."""
    data = member("demo-1.0/demo/data.py", kind, "../../outside/secret")
    assert refusal(yard, data) <= {"unsupported", "path-escape"}


def test_a_file_below_a_link_of_the_same_archive(yard: Yard) -> None:
    link, file = tarfile.TarInfo("demo-1.0/out"), tarfile.TarInfo("demo-1.0/out/new.py")
    link.type, link.linkname, file.size = tarfile.SYMTYPE, "demo", 3
    data = tar_of(FILES, "demo-1.0", link, file)
    assert refusal(yard, data) <= {"path-escape", "unsupported", "target-exists"}


def test_one_name_twice_and_a_link_in_its_place(yard: Yard) -> None:
    """The second `demo` would turn the folder of the first into a link."""
    link = tarfile.TarInfo("demo-1.0/demo")
    link.type, link.linkname = tarfile.SYMTYPE, "PKG-INFO"
    data = tar_of(FILES, "demo-1.0", link)
    assert refusal(yard, data) <= {"path-escape", "unsupported", "target-exists"}


def test_git_cve_2024_32002_a_link_to_the_git_folder(yard: Yard) -> None:
    assert refusal(yard, member("demo-1.0/a", tarfile.SYMTYPE, ".git")) == {"path-escape"}
    assert refusal(yard, member("demo-1.0/a", tarfile.SYMTYPE, "demo/../.GIT/hooks")) == {
        "path-escape"
    }


def test_another_archive_than_the_pinned_one(yard: Yard) -> None:
    sdist = pinned(yard, member("demo-1.0/demo/new.py"))
    sdist.write_bytes(member("../outside/new.py"))
    assert (yard.names("lock", "--pin", "v1.0", "--source", str(sdist))) == {"pin-mismatch"}


def _zip(files: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        info = zipfile.ZipInfo("engine/extra.py")
        change(info)
        archive.writestr(info, b"../../outside/secret")
    return body.getvalue()


def _dots(info: zipfile.ZipInfo) -> None:
    info.filename = "../../outside/new.py"


def _absolute(info: zipfile.ZipInfo) -> None:
    info.filename = "/tmp/outside/new.py"


def _backslashes(info: zipfile.ZipInfo) -> None:
    info.filename = "engine\\..\\..\\outside\\new.py"


def _git(info: zipfile.ZipInfo) -> None:
    info.filename = "engine/.git/hooks/post-checkout"


def _link(info: zipfile.ZipInfo) -> None:
    info.external_attr = 0o120777 << 16


@pytest.mark.parametrize("change", [_dots, _absolute, _backslashes, _git, _link])
def test_zip_slip_a_base_wheel_with_names_and_links_that_leave(
    yard: Yard, change: Callable[[zipfile.ZipInfo], None]
) -> None:
    files = wheels.sealed(wheels.files_of(yard.home / "upstream"))
    data = _zip(files, change)
    pins = yard.at / "pins.toml"
    pins.write_text(pins.read_text().replace("[pins", 'package = "engine"\n\n[pins', 1))
    wheel = yard.file("engine-1.0-cp38-abi3-manylinux_2_28_x86_64.whl", data)
    digest = hashlib.sha256(data).hexdigest()
    line = ("build", "--base-wheel", str(wheel), "--sha256", digest, "-o", str(yard.home / "out"))
    assert (yard.names(*line)) <= {"path-escape", "unsupported"}
    assert not (yard.home / "out").exists()


def test_a_record_that_names_files_outside(yard: Yard) -> None:
    """pip removes what RECORD names; we neither read nor hash it."""
    from tests.unit.target.installing import Site, numbered

    site = Site(yard.home / "site")
    rows = [
        "../outside/secret,,",
        f"{yard.outside}/victim.py,sha256=AAAA,3",
        '"../outside/with ""quotes"", and commas",,',
        "engine/../../outside/secret,,",
    ]
    files = {"engine/__init__.py": b"", "engine/lanes.py": LINES.encode(), "engine/a.py": b"x\n"}
    site.install({**files, "engine/n.py": numbered(9)}, more=rows)
    given = yard.file(
        "given/loose.patch",
        "--- a/engine/lanes.py\n+++ b/engine/lanes.py\n@@ -20,3 +20,3 @@\n line 19\n"
        "-line 20\n+line twenty\n line 21\n",
    )
    at = ("--installed", "--site", str(site.at))
    yard.attack("apply", str(given), *at, code=0)
    yard.attack("check", *at, code=0)
    yard.attack("revert", *at, code=0)
    assert (site.at / "engine" / "lanes.py").read_text() == LINES
