"""What the words of a source line are: comment, string, number, keyword, name, or none of these.

Enough for reading a diff, no parser: what is not known stays plain. c: comment, s: string, n:
number, k: keyword, f: name that is defined, d: decorator, directive or built-in name.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = r"(?P<n>\b(?:0[xXbBoO][0-9a-fA-F_']+|\d[\d_']*(?:\.\d*)?(?:[eE][+-]?\d+)?)[A-Za-z]*\b)"
_WORD = r"(?P<w>[A-Za-z_]\w*)"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?"
# What is not closed reaches to the end: nothing is looked through twice.
_STRINGS = rb"\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?"


@dataclass(frozen=True)
class Language:
    """words: pattern of a line's parts, with groups named by class, w for words. keywords, known:
    words of class k and d. blocks: pattern, in bytes, of strings and comments, those of several
    lines among them, what they begin with in the group `open`. ends: opening -> class, and what
    ends it.
    """

    name: str
    words: re.Pattern[str]
    keywords: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    blocks: re.Pattern[bytes] | None = None
    ends: tuple[tuple[str, str, str], ...] = ()

    def rest_of(self, inside: str, text: str) -> tuple[str, int]:
        """The class of a line that begins inside of something, and how far that reaches."""
        for opening, mark, ending in self.ends:
            if opening == inside:
                at = text.find(ending)
                while at > 0 and mark == "s" and _escaped(text, at):
                    at = text.find(ending, at + 1)
                return mark, at + len(ending) if at >= 0 else len(text)
        return "", 0

    def words_of(self, text: str, start: int) -> Iterator[tuple[int, int, str]]:
        """The parts that have a class, from `start` on: start, end, class."""
        defined = False
        for found in self.words.finditer(text, start):
            kind = found.lastgroup or ""
            if kind == "w":
                word = found[0]
                kind = "k" if word in self.keywords else "d" if word in self.known else ""
                kind = "f" if defined and not kind else kind
                defined = word in ("def", "class") and kind == "k"
                if not kind:
                    continue
            yield found.start(), found.end(), kind


def _escaped(text: str, at: int) -> bool:
    before = len(text[:at]) - len(text[:at].rstrip("\\"))
    return before % 2 == 1


def _all(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _language(name: str, *parts: str, **more: object) -> Language:
    return Language(name, re.compile("|".join(parts)), **more)  # type: ignore[arg-type]


_PYTHON = _language(
    "python",
    r"(?P<c>#.*)",
    r"(?P<s>(?i:[rbuf]{0,2})(?:\"\"\".*?(?:\"\"\"|$)|'''.*?(?:'''|$)|" + _QUOTED + "))",
    r"(?P<d>(?<!\S)@[A-Za-z_][\w.]*)",
    _NUMBER,
    _WORD,
    keywords=frozenset({*keyword.kwlist, "match", "case"} - {"None", "True", "False"}),
    known=frozenset(
        {
            "None",
            "True",
            "False",
            "self",
            "cls",
            *(n for n in dir(builtins) if n.islower() and not n.startswith("_")),
        }
    ),
    blocks=re.compile(
        rb"#[^\n]*|(?P<open>\"\"\"|''')(?:[^\\]|\\.)*?(?:(?P=open)|\\?\Z)|" + _STRINGS,
        re.DOTALL,
    ),
    ends=(('"""', "s", '"""'), ("'''", "s", "'''")),
)
_C = _language(
    "c",
    r"(?P<c>//.*|/\*.*?(?:\*/|$))",
    r"(?P<s>" + _QUOTED + r"|(?<=#include )<[^>]*>)",
    r"(?P<d>^\s*#\s*\w+|\b__\w+__\b|\[\[\w+\]\])",
    _NUMBER,
    _WORD,
    keywords=_all(
        "alignas asm auto break case catch class concept const consteval constexpr continue"
        " decltype default delete do else enum explicit extern final for friend goto if inline"
        " mutable namespace new noexcept operator override private protected public register"
        " requires return sizeof static static_assert static_cast reinterpret_cast const_cast"
        " struct switch template this throw try typedef typename union using virtual volatile"
        " while fn let mut pub impl trait use mod match func var function import export"
    ),
    known=_all(
        "bool char double float half int long short signed size_t unsigned void int8_t int16_t"
        " int32_t int64_t uint8_t uint16_t uint32_t uint64_t true false nullptr NULL"
    ),
    blocks=re.compile(
        rb"//[^\n]*|(?P<open>/\*).*?(?:\*/|\Z)|" + _STRINGS,
        re.DOTALL,
    ),
    ends=(("/*", "c", "*/"),),
)
_HASHED = _language(
    "hashed",
    r"(?P<c>(?<!\S)#.*)",
    r"(?P<s>" + _QUOTED + ")",
    r"(?P<d>^\s*\[+[^\]]*\]+|\$\{?\w+\}?)",
    _NUMBER,
    _WORD,
    keywords=_all(
        "if then else elif fi for do done while in case esac function return export set"
        " endif foreach endforeach elseif macro endmacro include option message"
    ),
    known=frozenset({"true", "false", "null", "ON", "OFF"}),
)
_JSON = _language(
    "json",
    r"(?P<s>" + _QUOTED + ")",
    _NUMBER,
    _WORD,
    known=frozenset({"true", "false", "null"}),
)
_BY_END = {
    **dict.fromkeys((".py", ".pyi", ".pyx"), _PYTHON),
    **dict.fromkeys(
        (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hip", ".inl", ".rs", ".go"),
        _C,
    ),
    **dict.fromkeys((".js", ".ts", ".java"), _C),
    **dict.fromkeys((".sh", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".cmake", ".mk"), _HASHED),
    ".json": _JSON,
}
_BY_NAME = dict.fromkeys(("CMakeLists.txt", "Makefile", "Dockerfile"), _HASHED)


def language_of(name: str) -> Language | None:
    """The language of a file of that name; None where it stays plain."""
    dot = name.rfind(".")
    return _BY_NAME.get(name) or _BY_END.get(name[dot:].lower() if dot >= 0 else "")
