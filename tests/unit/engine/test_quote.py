"""Names and lines as text."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.engine.model import path_text
from patchkit.engine.quote import c_quote, c_unquote, read_quoted, show_line, show_path


@pytest.mark.parametrize(
    ("quoted", "raw"),
    [
        (rb'"a b"', b"a b"),
        (rb'"tab\there"', b"tab\there"),
        (rb'"caf\303\251"', "café".encode()),
        (rb'"q\"\\"', b'q"\\'),
        (rb'"\a\b\f\v\r\n\033"', b"\a\b\f\v\r\n\x1b"),
        (rb'"b/\056\056/x"', b"b/../x"),
        (b'"\xff"', b"\xff"),
    ],
)
def test_quoted_names_are_read_as_git_writes_them(quoted: bytes, raw: bytes) -> None:
    assert c_unquote(quoted) == raw


@pytest.mark.parametrize(
    "text", [b"", b"a", b'"', b'"a', b'"a"b', rb'"\x41"', rb'"\477"', rb'"\12"', b'"a\\']
)
def test_what_is_no_quoted_name_is_not_read_as_one(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a quoted name"):
        c_unquote(text)


def test_reading_stops_at_the_closing_quote() -> None:
    assert read_quoted(b'x "a b" "c"', 2) == (b"a b", 7)


@given(st.binary(max_size=40))
def test_quoting_then_unquoting_gives_the_name_back(raw: bytes) -> None:
    for high in (True, False):
        quoted = c_quote(raw, high=high)
        assert quoted == raw or c_unquote(quoted) == raw
        assert not any(byte < 0x20 or byte == 0x7F for byte in quoted)


def test_quoting_is_git_s_own_for_every_byte(tmp_path) -> None:
    names = [b"x" + bytes((byte,)) for byte in range(1, 256) if byte not in b"/\n"]
    entries = b"".join(
        b"100644 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t" + n + b"\0" for n in names
    )
    git = ["git", "-c", "core.quotePath=true"]
    subprocess.run([*git, "init", "-q", "--bare", "."], cwd=tmp_path, check=True)
    tree = subprocess.run(
        [*git, "mktree", "-z", "--missing"],
        cwd=tmp_path,
        input=entries,
        capture_output=True,
        check=True,
    ).stdout.decode()
    listed = subprocess.run(
        [*git, "ls-tree", "--name-only", tree.strip()],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    ).stdout
    assert listed.split(b"\n")[:-1] == [c_quote(name) for name in sorted(names)]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("engine/x.py", "engine/x.py"),
        ("engine/café.py", "engine/café.py"),
        ("a\\engine\\x.py", "a\\engine\\x.py"),
        ("engine/\x1b[2Jx.py", '"engine/\\033[2Jx.py"'),
        ("tab\there", '"tab\\there"'),
        ('"quoted"', '"\\"quoted\\""'),
        ("line\nfeed", '"line\\nfeed"'),
        ("right\u202eleft", '"right\\342\\200\\256left"'),
        (path_text(b"caf\xe9"), '"caf\\351"'),
    ],
)
def test_a_name_is_shown_plainly_or_quoted_but_never_raw(path: str, shown: str) -> None:
    assert show_path(path) == shown


@given(st.binary(max_size=60).map(path_text))
def test_no_shown_name_holds_a_control_byte_or_breaks_a_line(path: str) -> None:
    assert show_path(path).isprintable()
    assert len(show_path(path).splitlines()) <= 1


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"    x = 1\n", "    x = 1"),
        (b"\tx\r\n", "\\tx\\r"),
        ("\u00a0\u00a0x\n".encode(), "<U+00A0><U+00A0>x"),
        (b"\x1b[2J\n", "\\x1b[2J"),
        (b"caf\xe9\n", "caf\\xe9"),
        ("café – 日本\n".encode(), "café – 日本"),
        ("zero\u200bwidth".encode(), "zero<U+200B>width"),
        ("bidi\u202e".encode(), "bidi<U+202E>"),
    ],
)
def test_a_line_shows_what_cannot_be_seen(line: bytes, shown: str) -> None:
    assert show_line(line) == shown


def test_a_huge_line_is_cut_and_measured() -> None:
    shown = show_line(b"7," * 2_000_000 + b"\n", limit=20)
    assert shown == "7," * 10 + "… (4000000 bytes)"


@given(st.binary(max_size=200))
def test_no_shown_line_holds_a_control_byte(line: bytes) -> None:
    assert show_line(line).isprintable()
