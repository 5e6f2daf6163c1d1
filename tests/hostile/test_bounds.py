"""What is large is finished in bounded memory, or refused by its name before it is taken in.

The limit is the promise of SECURITY.md: four times the input and 100 MB.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchkit.engine.parse import MAX_DENSITY, MAX_LINES
from patchkit.series.header import parse_header
from tests.hostile.conftest import Yard, create, edit
from tests.unit.source.conftest import tar_of

MB = 1 << 20
LIMIT = 64 * MB


@dataclass(frozen=True)
class Ran:
    code: int
    text: str
    peak: int
    """Bytes."""


MEASURE = """
import os, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as peak:
    peak.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10))
sys.exit(code)
"""
"""A process begins with the peak of the one that it was forked from: this one is small."""


def run(at: Path, *args: str) -> Ran:
    """The command in a process of its own, and the most memory that it held."""
    env = {**os.environ, "HOME": str(at), "PATCHKIT_CACHE": str(at / "the-cache"), "NO_COLOR": "1"}
    line = [sys.executable, "-S", "-c", MEASURE, str(at / "peak")]
    done = subprocess.run(
        [*line, sys.executable, "-m", "patchkit", *args],
        cwd=at,
        env=env,
        capture_output=True,
        check=False,
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return Ran(done.returncode, text, int((at / "peak").read_text()))


def within(done: Ran, size: int, code: int = 0) -> None:
    assert done.code == code, done.text[-2000:]
    assert "Traceback" not in done.text
    most = 4 * size + 100 * MB
    assert done.peak <= most, f"{done.peak / MB:.0f} MB, and {most / MB:.0f} MB are promised"


def tree(at: Path) -> Path:
    (at / "tree" / "engine").mkdir(parents=True)
    return at / "tree"


@pytest.mark.parametrize(
    ("size", "line"),
    [
        (8 * MB, "x" * 60),
        pytest.param(60 * MB, "x" * 60, marks=pytest.mark.slow),
        (3 * MAX_LINES * MAX_DENSITY // (MAX_DENSITY - 3) - 1000, "x"),
        pytest.param(60 * MB, "x" * MB, marks=pytest.mark.slow),
    ],
)
def test_a_patch_near_the_limit(tmp_path: Path, size: int, line: str) -> None:
    at = tree(tmp_path)
    count = size // (len(line) + 2)
    patch = tmp_path / "big.patch"
    patch.write_text(create("engine/big.py", [line] * count))
    size = patch.stat().st_size
    within(run(tmp_path, "apply", str(patch), "--to", str(at)), size)
    assert (at / "engine" / "big.py").stat().st_size == count * (len(line) + 1)
    again = run(tmp_path, "apply", str(patch), "--to", str(at))  # it is there already
    within(again, 2 * size)


def test_a_patch_of_too_many_lines_is_refused_by_name(tmp_path: Path) -> None:
    at = tree(tmp_path)
    patch = tmp_path / "big.patch"
    patch.write_text(
        create("engine/big.py", [""] * (MAX_LINES * MAX_DENSITY // (MAX_DENSITY - 2) + 9))
    )
    done = run(tmp_path, "apply", str(patch), "--to", str(at))
    within(done, patch.stat().st_size, 1)
    assert "too-large" in done.text


@pytest.mark.parametrize("verb", [["apply", "--to", "tree"], ["lint"]])
def test_a_patch_above_the_limit_is_refused_by_name_unread(tmp_path: Path, verb: list[str]) -> None:
    tree(tmp_path)
    with open(tmp_path / "big.patch", "wb") as file:
        file.truncate(40 * LIMIT)
    done = run(tmp_path, verb[0], "big.patch", *verb[1:])
    within(done, LIMIT, 1)
    assert "too-large" in done.text


@pytest.mark.slow
def test_a_hundred_thousand_hunks(tmp_path: Path) -> None:
    at = tree(tmp_path)
    lines = [f"line {n}\n" for n in range(900_000)]
    (at / "engine" / "big.py").write_text("".join(lines))
    out = ["--- a/engine/big.py\n+++ b/engine/big.py\n"]
    for n in range(1, 900_000, 9):
        out.append(f"@@ -{n},3 +{n},3 @@\n {lines[n - 1]}-{lines[n]}+x\n {lines[n + 1]}")
    patch = tmp_path / "big.patch"
    patch.write_text("".join(out))
    size = patch.stat().st_size + (at / "engine" / "big.py").stat().st_size
    done = run(tmp_path, "apply", str(patch), "--to", str(at))
    within(done, size)
    assert (at / "engine" / "big.py").read_text().count("x\n") == 100_000


def test_a_series_of_five_thousand(tmp_path: Path) -> None:
    """Fifty patches each of a hundred files."""
    at = tree(tmp_path)
    for n in range(100):
        (at / "engine" / f"f{n}.py").write_text("".join(f"line {n}\n" for n in range(500)))
    given = tmp_path / "given"
    given.mkdir()
    names = []
    for n in range(5000):
        name, top = f"engine/f{n % 100}.py", 10 * (n // 100)
        (given / f"p{n}.patch").write_text(
            f"--- a/{name}\n+++ b/{name}\n@@ -{top + 1},3 +{top + 1},3 @@\n line {top}\n"
            f"-line {top + 1}\n+line of {n}\n line {top + 2}\n"
        )
        names.append(f"p{n}.patch\n")
    (given / "series").write_text("".join(names))
    size = sum(p.stat().st_size for p in (*given.iterdir(), *at.rglob("*.py")))
    within(run(tmp_path, "apply", "--series", str(given), "--to", str(at)), size)
    assert sum(p.read_text().count("line of") for p in at.rglob("*.py")) == 5000


@pytest.mark.slow
def test_a_series_of_five_thousand_on_one_large_file(tmp_path: Path) -> None:
    """Their versions share the lines that no patch touches."""
    at = tree(tmp_path)
    (at / "engine" / "big.py").write_text("".join(f"line {n}\n" for n in range(50_000)))
    given = tmp_path / "given"
    given.mkdir()
    for n in range(5000):
        top = 10 * n
        (given / f"p{n}.patch").write_text(
            f"--- a/engine/big.py\n+++ b/engine/big.py\n@@ -{top + 1},3 +{top + 1},3 @@\n"
            f" line {top}\n-line {top + 1}\n+line of {n}\n line {top + 2}\n"
        )
    (given / "series").write_text("".join(f"p{n}.patch\n" for n in range(5000)))
    size = sum(p.stat().st_size for p in (*given.iterdir(), *at.rglob("*.py")))
    within(run(tmp_path, "apply", "--series", str(given), "--to", str(at)), size)
    assert (at / "engine" / "big.py").read_text().count("line of") == 5000


@pytest.mark.parametrize(
    "count", [120_000, pytest.param(900_000, marks=pytest.mark.slow, id="many")]
)
@pytest.mark.parametrize("there", [True, False])
def test_a_hunk_is_looked_for_in_a_large_file(tmp_path: Path, count: int, there: bool) -> None:
    """It stands elsewhere, or nearly so: then the place is named."""
    at = tree(tmp_path)
    lines = [f"line {n:>12} {'y' * 40}\n" for n in range(count)]
    (at / "engine" / "big.py").write_text("".join(lines))
    old = lines[501] if there else "another line\n"
    patch = tmp_path / "moved.patch"
    patch.write_text(
        f"--- a/engine/big.py\n+++ b/engine/big.py\n@@ -100,3 +100,3 @@\n {lines[500]}-{old}+new\n"
        f" {lines[502]}"
    )
    done = run(tmp_path, "apply", str(patch), "--to", str(at))
    within(done, (at / "engine" / "big.py").stat().st_size, 0 if there else 1)
    assert "line 501" in done.text


def test_one_patch_more_than_five_thousand_is_refused_by_name(tmp_path: Path) -> None:
    at = tree(tmp_path)
    given = tmp_path / "given"
    given.mkdir()
    (given / "series").write_text("".join(f"p{n}.patch\n" for n in range(5001)))
    done = run(tmp_path, "apply", "--series", str(given), "--to", str(at))
    within(done, 0, 1)
    assert "too-large" in done.text


def pinned(at: Path, data: bytes) -> list[str]:
    """A project whose pin is the sdist `data`; the words that name it."""
    (at / "demo-1.0.tar.gz").write_bytes(data)
    (at / "pins.toml").write_text(
        '[upstreams.demo]\nkind = "plain"\npypi = "demo"\npackage = "demo"\n'
        '[pins."v1.0"]\nupstream = "demo"\n[pins."v1.0".files]\n'
        f'"demo-1.0.tar.gz" = "sha256:{hashlib.sha256(data).hexdigest()}"\n'
    )
    (at / "series" / "v1.0").mkdir(parents=True)
    (at / "series" / "v1.0" / "series").write_text("")
    return ["--pin", "v1.0", "--source", "demo-1.0.tar.gz"]


@pytest.mark.slow
def test_an_archive(tmp_path: Path) -> None:
    """Sixty files of one MB, none like another: no more than one of them is held."""
    files = {f"demo/f{n}.bin": (0o644, os.urandom(MB)) for n in range(60)}
    files["PKG-INFO"] = (0o644, b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n")
    data = tar_of(files)
    done = run(tmp_path, "lock", *pinned(tmp_path, data))
    within(done, 10 * MB)


def test_an_archive_that_expands_without_end_is_refused_by_name(tmp_path: Path) -> None:
    """700 MB of zeros in one file take less than one MB in the archive."""
    import gzip
    import io
    import tarfile

    info = tarfile.TarInfo("demo-1.0/demo/zeros")
    info.size = 700 * MB
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as zipped:
        zipped.write(info.tobuf(tarfile.GNU_FORMAT))
        zipped.write(bytes(16 * MB))
    done = run(tmp_path, "lock", *pinned(tmp_path, out.getvalue()))
    within(done, MB, 1)
    assert "too-large" in done.text


def test_ten_thousand_findings_and_fields_take_seconds(yard: Yard) -> None:
    """Each is compared with the others by its hash, not one by one: that took minutes."""
    head = "From: A <a@example.org>\nSubject: s\n"
    fields = "".join(f"X-{n}: y\n" for n in range(40_000))
    sections = "diff --git a/x b/x\n" * 10_000
    patch = yard.file("odd.patch", f"{head}\nWhy.\n---\n{sections}{edit('a/engine/lanes.py')}")
    said = yard.attack("apply", str(patch), "--to", str(yard.tree), "--check")
    assert len(said["findings"]) > 10_000
    read = parse_header(f"{head}{fields}\nWhy.\n".encode())
    assert len(read.view()) == 40_000 + 3
