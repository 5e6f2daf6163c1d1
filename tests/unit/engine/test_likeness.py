"""How alike two files are: git's own similarity index is the referee."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from patchkit.engine.likeness import likeness
from patchkit.engine.model import SYMLINK, File
from tests.unit.rebase.ground import QUIET

LINES = st.lists(
    st.sampled_from([b"a\n", b"bb\n", b"    return x\n", b"\n", b"x" * 150 + b"\n", b"y\r\n"]),
    min_size=1,
    max_size=12,
)


def by_git(at: Path, one: bytes, two: bytes) -> int | None:
    """git's similarity in percent, rounded down; None where it finds no rename at all."""
    stream = b""
    for n, (name, data) in enumerate((("old", one), ("new", two)), 1):
        stream += f"reset refs/heads/{name}\ncommit refs/heads/{name}\nmark :{n}\n".encode()
        stream += b"committer A <a@example.invalid> 1700000000 +0000\ndata 0\n"
        stream += f"M 100644 inline {name}.py\ndata {len(data)}\n".encode() + data + b"\n"
    for args, text in (
        (["fast-import", "--quiet", "--force"], stream),
        (["diff", "-M1%", "--no-ext-diff", "--name-status", "old", "new"], b""),
    ):
        out = subprocess.run(
            ["git", *args], cwd=at, env=QUIET, input=text, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
    found = re.match(r"R(\d+)", out)
    return int(found[1]) if found else None


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("likeness")
    subprocess.run(["git", "init", "-q", "--bare", "."], cwd=at, env=QUIET, check=True)
    return at


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(LINES, LINES)
@example([b"a\n", b"bb\n"], [b"a\n"])
@example([b"x" * 150 + b"\n"], [b"x" * 150 + b"\n", b"a\n"])
@example([b"y\r\n"] * 5, [b"y\r\n"] * 4 + [b"a\n"])
def test_it_is_gits_similarity_index(repo: Path, one: list[bytes], two: list[bytes]) -> None:
    old, new = b"".join(one), b"".join(two)
    ours, wanted = likeness(File(old), File(new)), by_git(repo, old, new)
    if wanted is None:
        assert ours < 0.5
    elif wanted >= 50:
        assert int(ours * 100) == wanted
    else:
        assert ours < 0.5


def test_an_empty_file_is_like_none_and_a_link_only_like_its_twin() -> None:
    assert likeness(File(b""), File(b"")) == 0
    assert likeness(File(b"a", SYMLINK), File(b"a", SYMLINK)) == 1
    assert likeness(File(b"a", SYMLINK), File(b"a")) == 0
    assert likeness(File(b"a/b", SYMLINK), File(b"a/c", SYMLINK)) == 0
