"""A line of a diff in colour: what it is inside of is read off the file; nothing raw comes out."""

from __future__ import annotations

import re
import time

import pytest
from markupsafe import Markup

from patchkit.engine.model import File
from patchkit.report.highlight import Coloured

MODULE = (
    b'''\
"""One line."""
import os  # why not

class Lane:
    """Two lines,
    def not_code(self): # inside

    and "quotes" '''
    b"""'''
    \"\"\"

    @property
    def wide(self) -> int:
        return 0x1f + len('a\\\\'b # no comment')
"""
)


def pieces(html: Markup) -> list[tuple[str, str]]:
    """(class, text), entities read."""
    found = re.findall(r'<i class="(\w)">(.*?)</i>|([^<]+)', str(html))
    return [(mark, Markup(inside or plain).unescape()) for mark, inside, plain in found]


def coloured(path: str, data: bytes, number: int) -> list[tuple[str, str]]:
    line = data.split(b"\n")[number - 1]
    got = pieces(Coloured(path, File(data)).line(number, line + b"\n"))
    assert "".join(text for _, text in got) == line.decode("utf-8", "replace")
    return [(mark, text) for mark, text in got if mark]


def test_words_of_python_have_their_classes() -> None:
    assert coloured("a.py", MODULE, 1) == [("s", '"""One line."""')]
    assert coloured("a.py", MODULE, 2) == [("k", "import"), ("c", "# why not")]
    assert coloured("a.py", MODULE, 4) == [("k", "class"), ("f", "Lane")]
    assert coloured("a.py", MODULE, 11) == [("d", "@property")]
    assert coloured("a.py", MODULE, 12) == [
        ("k", "def"),
        ("f", "wide"),
        ("d", "self"),
        ("d", "int"),
    ]


def test_a_line_inside_of_a_docstring_is_a_string_from_its_first_word() -> None:
    for number in (6, 8):
        (only,) = coloured("a.py", MODULE, number)
        assert only[0] == "s"
    assert coloured("a.py", MODULE, 9) == [("s", '    """')]


def test_a_line_behind_it_is_code_again() -> None:
    data = b'x = """a\nb""" + "c"  # d\ny = 1\n'
    assert coloured("a.py", data, 2) == [("s", 'b"""'), ("s", '"c"'), ("c", "# d")]
    assert coloured("a.py", data, 3) == [("n", "1")]


def test_a_quote_in_a_comment_or_string_opens_nothing() -> None:
    data = b'a = 1  # don\'t """\nb = \'"""\'\nc = 2\n'
    assert coloured("a.py", data, 3) == [("n", "2")]


def test_comments_of_c_reach_over_lines() -> None:
    data = b'/* one\n two "x\n*/ int a = 1; // "y\n#include <a.h>\n'
    assert coloured("a.cu", data, 2) == [("c", ' two "x')]
    assert coloured("a.cu", data, 3) == [("c", "*/"), ("d", "int"), ("n", "1"), ("c", '// "y')]
    assert coloured("a.cu", data, 4)[0] == ("d", "#include")


def test_what_is_not_known_is_plain_and_everything_is_escaped() -> None:
    data = b'<b> & \x1b[31m \xff "q"\n'
    for path in ("a.txt", "a.py", "a.json", "CMakeLists.txt"):
        html = str(Coloured(path, File(data)).line(1, data))
        assert "<b>" not in html
        assert "&lt;b&gt; &amp;" in html.replace('<i class="d">', "").replace("</i>", "")
        assert "\x1b" not in html
    assert pieces(Coloured("a.txt", File(data)).line(1, b"def x\n")) == [("", "def x")]


def test_a_file_that_is_missing_binary_or_another_is_no_obstacle() -> None:
    for file in (None, File(b"\0\0"), File(b"")):
        assert pieces(Coloured("a.py", file).line(7, b"return 1\n"))[0] == ("k", "return")


@pytest.mark.parametrize(
    "text", [b'"""' * 40_000, b"'" * 100_000, b"/*" * 60_000, b'"\\' * 60_000, b'"""\\' * 30_000]
)
def test_no_text_takes_long(text: bytes) -> None:
    started = time.process_time()
    for path in ("a.py", "a.c"):
        Coloured(path, File(text + b"\n" + text)).line(2, text)
        Coloured(path, File(text)).line(1, text[:1999])
    assert time.process_time() - started < 2
