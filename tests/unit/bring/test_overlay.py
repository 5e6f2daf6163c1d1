"""Whole files that lie over the tree become a patch against the pin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import BASE, SmallProject

PLAN = BASE["engine/plan.py"].replace("DEPTH = 2", "DEPTH = 3")


def lay(at: Path, **files: str) -> Path:
    for name, text in files.items():
        path = at / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return at


@pytest.mark.parametrize(
    ("prefix", "options"),
    [
        ("engine__", []),
        ("", []),
        ("usr__lib__python3.12__site-packages__engine__", []),
        ("root__engine__", []),
        ("x__", ["--directory", "engine", "-p", "1"]),
    ],
)
def test_the_root_is_found(
    mine: SmallProject, tmp_path: Path, prefix: str, options: list[str]
) -> None:
    over = lay(tmp_path / "over", **{f"{prefix}plan_py": PLAN})
    cached = next(over.rglob("plan.py")).parent / "__pycache__"
    cached.mkdir()
    (cached / "plan.cpython-312.pyc").write_bytes(b"x")
    done = mine.run("import", "--overlay", str(over), "--name", "deeper", *options)
    assert done.code == 0, done.text
    text = (mine.series / "deeper.patch").read_text()
    assert "--- a/engine/plan.py\n+++ b/engine/plan.py\n" in text
    assert text.count("diff --git") == 1
    assert "-DEPTH = 2\n+DEPTH = 3\n" in text
    assert mine.run("check").code == 0


def test_line_ends_and_modes_are_the_tree_s(mine: SmallProject, tmp_path: Path) -> None:
    over = lay(tmp_path / "over", engine__plan_py=PLAN.replace("\n", "\r\n"))
    (over / "engine" / "plan.py").chmod(0o755)
    assert mine.run("import", "--overlay", str(over)).code == 0
    text = (mine.series / "over.patch").read_bytes()
    assert b"\r" not in text
    assert b"mode" not in text
    assert [line for line in text.splitlines() if line[:1] == b"-"][-1] == b"-DEPTH = 2"
    assert text.count(b"\n-") == len([b"---", b"--- a/", b"-DEPTH"])


def test_a_new_file_is_said_and_one_that_is_the_same_is_not_taken(
    mine: SmallProject, tmp_path: Path
) -> None:
    over = lay(
        tmp_path / "over",
        engine__plan_py=PLAN,
        engine__new_py="NEW = 1\n",
        engine__lanes_py=BASE["engine/lanes.py"],
    )
    done = mine.run("import", "--overlay", str(over))
    assert done.code == 0, done.text
    assert "engine/new.py is new" in done.err
    assert "1 as they are in the pin" in done.out
    assert (mine.series / "over.patch").read_text().count("diff --git") == 2


@pytest.mark.parametrize(
    ("files", "name", "words"),
    [
        ({"other__thing_py": "x\n"}, "missing-target", "--directory DIR"),
        ({"engine__plan_py": BASE["engine/plan.py"]}, "no-op", "changes nothing"),
        ({}, "no-op", "holds no file"),
    ],
)
def test_what_is_no_overlay_is_refused(
    mine: SmallProject, tmp_path: Path, files: dict[str, str], name: str, words: str
) -> None:
    (tmp_path / "over").mkdir()
    done = mine.run("import", "--overlay", str(lay(tmp_path / "over", **files)))
    assert done.code == 1
    assert name in done.err
    assert words in done.err
    assert (mine.series / "series").read_text() == ""


def test_it_lies_over_the_patches_before_it(mine: SmallProject, tmp_path: Path) -> None:
    over = lay(tmp_path / "one", engine__plan_py=PLAN)
    assert mine.run("import", "--overlay", str(over)).code == 0
    lay(over, engine__plan_py=PLAN.replace("WIDTH = 8", "WIDTH = 9"))
    assert mine.run("import", "--overlay", str(over), "--name", "two").code == 0
    text = (mine.series / "two.patch").read_text()
    assert "+WIDTH = 9\n" in text
    assert "+DEPTH" not in text


def test_what_is_left_out_is_not_said_to_be_new_and_what_editors_leave_goes(
    mine: SmallProject, tmp_path: Path
) -> None:
    over = lay(tmp_path / "over", engine__plan_py=PLAN, Dockerfile="FROM x\n", engine__new_py="1\n")
    for name in ("plan.py.bak", "plan.py~", "plan.py.rej", ".DS_Store"):
        (over / "engine" / name).write_text("x")
    (over / "engine" / "_c.so").write_bytes(b"\x7fELF\0")
    done = mine.run("import", "--overlay", str(over), "--exclude", "Dockerfile")
    assert done.code == 1
    assert "binary-unsupported: engine/_c.so" in done.err
    assert "next:     the same command with --exclude engine/_c.so, or '*.END' for all" in done.err
    done = mine.run(
        "import", "--overlay", str(over), "--exclude", "Dockerfile", "--exclude", "*.so"
    )
    assert done.code == 0, done.text
    assert done.err.count("is new: the tree has no such file") == 1
    assert (mine.series / "over.patch").read_text().count("diff --git") == 2


def test_a_file_with_crlf_in_the_tree_keeps_it(mine: SmallProject, tmp_path: Path) -> None:
    crlf = "A = 1\r\nB = 2\r\n"
    over = lay(tmp_path / "one", engine__crlf_py=crlf, engine__plan_py=PLAN)
    assert mine.run("import", "--overlay", str(over)).code == 0
    again = lay(tmp_path / "two", engine__crlf_py="A = 1\nB = 3\n")
    done = mine.run("import", "--overlay", str(again))
    assert done.code == 0, done.text
    text = (mine.series / "two.patch").read_bytes()
    assert b"-B = 2\r\n+B = 3\r\n" in text
    assert b"-A" not in text
