"""Which names a tree may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.engine.model import path_text
from patchkit.engine.paths import case_twins, is_git_folder, raw_escape, unsafe


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("\\\\server\\share", "absolute"),
        ("C:/x", "drive"),
        ("c:x", "drive"),
        ("../x", '".."'),
        ("a/../b", '".."'),
        ("a/..", '".."'),
        ("a\\..\\b", '".."'),
        ("..\\b", '".."'),
        ("./x", '"."'),
        ("a/./b", '"."'),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        ("a\0b", "NUL"),
        ("a\nb", "line feed"),
        (".git/hooks/x", "git folder"),
        (".GIT/config", "git folder"),
        ("engine/.git/config", "git folder"),
        ("a/.git", "git folder"),
        ("git~1/config", "git folder"),
        ("GIT~1/config", "git folder"),
        (".git./x", "git folder"),
        (".git /x", "git folder"),
        (".git . ./x", "git folder"),
        (".git::$INDEX_ALLOCATION/x", "git folder"),
        (".g\u200cit/x", "git folder"),
        ("\ufeff.GIT/x", "git folder"),
        ("a\\.git\\config", "git folder"),
        ("x" * 256, "255"),
        ("é" * 128, "255"),
        ("/".join(["x" * 100] * 30), "2048"),
        ("a/" * 200 + "a", "deep"),
    ],
)
def test_a_dangerous_path_is_refused_with_its_reason(path: str, word: str) -> None:
    reason = unsafe(path)
    assert reason is not None
    assert word in reason


@pytest.mark.parametrize(
    "path",
    [
        "engine/scheduler.py",
        ".github/workflows/x.yml",
        ".gitignore",
        ".gitattributes",
        "a/.gitmodules",
        "git/x",
        "digit~1",
        "..x/y",
        "x../y",
        "...",
        "a b/c d",
        'a"b\\c.py',
        "tab\there",
        "café.py",
        path_text(b"caf\xe9.py"),
        "engine/\x1b[2Jx.py",
        "x:y/z:w",
        "x" * 255,
    ],
)
def test_an_ordinary_path_is_taken(path: str) -> None:
    # "x:y" begins like a drive: only a single letter before the colon does
    assert (unsafe(path) is None) == (path != "x:y/z:w")


@given(st.text(alphabet="./\\a~1gitGIT:\0\n C", max_size=12))
def test_what_is_taken_stays_in_the_tree_on_any_system(path: str) -> None:
    if unsafe(path) is None:
        assert path
        assert path[0] not in "/\\"
        parts = path.replace("\\", "/").split("/")
        assert ".." not in parts
        assert not any(part.rstrip(" .").lower() in (".git", "git~1") for part in parts)
        assert "\0" not in path
        assert "\n" not in path


@pytest.mark.parametrize(
    ("name", "bare", "refused"),
    [
        ("a/engine/x.py", False, False),
        ("../new/engine/x.py", False, False),
        ("./engine/x.py", False, False),
        ("/srv/.git/site-packages/engine/x.py", False, False),
        ("/srv/../engine/x.py", False, True),
        ("b/../outside.py", False, True),
        ("b/engine/../setup.py", False, True),
        ("../new/../x", False, True),
        ("b/.git/config", False, True),
        ("../engine_old.py", True, True),
        ("engine/old.py", True, False),
        ("/etc/x", True, True),
        ("b/a\nb", False, True),
        ("b/a\\..\\b", False, True),
    ],
)
def test_before_stripping_only_what_no_strip_level_can_save_is_refused(
    name: str, bare: bool, refused: bool
) -> None:
    assert (raw_escape(name, bare=bare) is not None) == refused


def test_git_folder_names_are_known_by_every_file_system_s_rules() -> None:
    assert is_git_folder(".gIt")
    assert not is_git_folder(".gitx")
    assert not is_git_folder("git~2")


def test_names_that_differ_in_case_alone_are_twins() -> None:
    paths = ["a/B.py", "a/b.py", "a/c.py", "caf\u00e9", "CAFE\u0301", "z"]
    assert case_twins(paths) == (("CAFE\u0301", "caf\u00e9"), ("a/B.py", "a/b.py"))
    assert case_twins(["x", "x"]) == ()
