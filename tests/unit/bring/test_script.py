"""What a script makes of the tree becomes a patch; edits that match nothing are told of."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from patchkit.bring.inside import sed
from tests.conftest import SmallProject


def script(at: Path, text: str, name: str = "deepen.sh") -> Path:
    path = at / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_what_it_changed_is_a_patch(mine: SmallProject) -> None:
    script(
        mine.at, "#!/bin/sh\nset -e\ncd \"$1\"\nsed -i 's/DEPTH = 2/DEPTH = 3/' engine/plan.py\n"
    )
    before = {p: p.read_bytes() for p in mine.base.rglob("*") if p.is_file()}
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 0, done.text
    text = (mine.series / "deepen.patch").read_text()
    assert "-DEPTH = 2\n+DEPTH = 3\n" in text
    assert "Made by: ./deepen.sh {tree}\n" in text
    assert str(mine.at) not in text
    assert "a mail" not in done.out
    assert {p: p.read_bytes() for p in mine.base.rglob("*") if p.is_file()} == before
    assert done.err == ""
    assert mine.run("check").code == 0


def test_without_tree_it_runs_inside_the_copy(mine: SmallProject) -> None:
    script(
        mine.at,
        "import pathlib\np = pathlib.Path('engine/plan.py')\n"
        "p.write_text(p.read_text().replace('DEPTH = 2', 'DEPTH = 5'))\n"
        "pathlib.Path('engine/__pycache__').mkdir()\n"
        "pathlib.Path('engine/__pycache__/x.pyc').write_text('x')\n"
        "pathlib.Path('engine/plan.py.orig').write_text('x')\n",
        "five.py",
    )
    done = mine.run("import", "--run", "python3 five.py")
    assert done.code == 0, done.text
    text = (mine.series / "five.patch").read_text()
    assert "+DEPTH = 5\n" in text
    assert text.count("diff --git") == 1
    assert "plan.py.orig, which the script left, is no part of it" in done.err


HALF = (
    "#!/bin/sh\ncd \"$1\"\nsed -i 's/DEPTH = 2/DEPTH = 3/' engine/plan.py\n"
    "sed -i -e 's/NOWHERE/x/' engine/plan.py\necho Patched\n"
)


def test_a_sed_that_matches_nothing_is_found_though_its_file_changed(mine: SmallProject) -> None:
    script(mine.at, HALF)
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 1
    assert "no-op: an edit matched nothing: `sed -i -e s/NOWHERE/x/ engine/plan.py`" in done.err
    assert done.err.count("error:") == 1
    assert "--allow-no-op" in done.err
    assert (mine.series / "series").read_text() == ""
    done = mine.run("import", "--run", "./deepen.sh {tree}", "--allow-no-op")
    assert done.code == 0, done.text
    assert "note: no-op" in done.err
    assert "+DEPTH = 3\n" in (mine.series / "deepen.patch").read_text()


@pytest.mark.parametrize(
    "call",
    [
        "sed -i 's/DEPTH = 2/DEPTH = 3/;s/NOWHERE/x/g' F",
        "sed -i -e 's/DEPTH = 2/DEPTH = 3/' -e 's/NOWHERE/x/g' F",
        "sed -Ei.bak 's|DEPTH = (2)|DEPTH = 3|; s/NOWHERE/x/g;' F",
        "sed --in-place -e 's/NOWHERE/x/g' --expression='s,DEPTH = 2,DEPTH = 3,' F",
    ],
)
def test_half_of_a_sed_that_matches_nothing_is_found(mine: SmallProject, call: str) -> None:
    script(mine.at, f"#!/bin/sh\ncd $1\n{call.replace('F', 'engine/plan.py')}\n")
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 1, done.text
    assert "matched nothing: `sed -i s/NOWHERE/x/g engine/plan.py`" in done.err
    assert done.err.count("error:") == 1


@pytest.mark.parametrize(
    "call",
    [
        "sed -i 's/DEPTH/D/;s/D = 2/D = 3/' F",
        "sed -i '1s/DEPTH/D/;s/NOWHERE/x/' F",
        "sed -i -e '/DEPTH/{s/2/3/' -e '}' F",
        "sed -i 's/D\\/X;/x;/;s/DEPTH/D/' F; sed -i 's;N;x;' F",
    ],
)
def test_of_a_sed_that_is_not_understood_nothing_is_claimed(call: str) -> None:
    words = shlex.split(call.partition("; sed")[0])[1:]
    _, commands = sed.asked(words, ["F"])
    if "D = 3" in call:
        assert commands == ["s/DEPTH/D/", "s/D = 2/D = 3/"]
    elif "X;" in call:
        assert commands == ["s/D\\/X;/x;/", "s/DEPTH/D/"]
    else:
        assert commands == []


@pytest.mark.parametrize(
    "body",
    [
        "p.write_text(p.read_text().replace('NOWHERE', 'x'))",
        "q = p.with_suffix('.tmp'); q.write_bytes(p.read_bytes()); q.replace(p)",
    ],
)
def test_a_file_that_is_written_as_it_was_is_found(mine: SmallProject, body: str) -> None:
    script(
        mine.at,
        "import pathlib, sys\np = pathlib.Path(sys.argv[1], 'engine/lanes.py')\n"
        f"{body}\np = pathlib.Path(sys.argv[1], 'engine/plan.py')\n"
        "p.write_text(p.read_text().replace('DEPTH = 2', 'DEPTH = 5'))\n",
        "half.py",
    )
    done = mine.run("import", "--run", "python3 half.py {tree}")
    assert done.code == 1
    assert "engine/lanes.py was written and is as it was" in done.err
    assert "plan.py" not in done.err


def test_a_script_that_changes_nothing_is_refused_whatever_is_allowed(mine: SmallProject) -> None:
    script(mine.at, "#!/bin/sh\necho Patched 3 files\n")
    for more in ([], ["--allow-no-op"]):
        done = mine.run("import", "--run", "./deepen.sh {tree}", *more)
        assert done.code == 1
        assert "changed no file at all" in done.err
        assert "of its own?" not in done.err
    done = mine.run("import", "--run", "./deepen.sh")
    assert "does it name a folder of its own? then hand it {tree}" in done.err


def test_a_second_run_that_changes_its_result_is_told(mine: SmallProject) -> None:
    script(mine.at, "#!/bin/sh\nsed -i 's/DEPTH/DEPTH_X/' $1/engine/plan.py\n")
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 0, done.text
    assert "note: not-idempotent: a second run of ./deepen.sh {tree} changes its own" in done.err
    assert "engine/plan.py" in done.err
    assert "+DEPTH_X = 2\n" in (mine.series / "deepen.patch").read_text()


def test_one_that_refuses_a_second_run_is_right(mine: SmallProject) -> None:
    script(
        mine.at,
        "#!/bin/sh\ngrep -q 'DEPTH = 3' $1/engine/plan.py && exit 1\n"
        "sed -i 's/DEPTH = 2/DEPTH = 3/' $1/engine/plan.py\n",
    )
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert (done.code, done.err) == (0, ""), done.text


def test_a_failing_one_shows_its_last_words(mine: SmallProject) -> None:
    script(mine.at, "#!/bin/sh\necho x > $1/engine/plan.py\necho anchor not found >&2\nexit 3\n")
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 1
    assert "exit status 3" in done.err
    assert "anchor not found" in done.err
    assert "1 file(s) changed before that" in done.err


def test_a_rejected_part_is_found(mine: SmallProject) -> None:
    script(mine.at, "#!/bin/sh\necho x > $1/engine/plan.py\necho y > $1/engine/plan.py.rej\n")
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 1
    assert "a part of its patch was rejected" in done.err


def test_no_shell_reads_the_words(mine: SmallProject, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script(mine.at, "#!/bin/sh\nprintf '%s' \"$2\" > $1/engine/plan.py\n")
    done = mine.run("import", "--run", f"./deepen.sh {{tree}} '; touch {mark} $(touch {mark})'")
    assert done.code == 0, done.text
    assert not mark.exists()
    assert f"+; touch {mark} $(touch {mark})" in (mine.series / "deepen.patch").read_text()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--run", "./none.sh {tree}"], "no program ./none.sh"),
        (["--run", "'"], "No closing quotation"),
        (["--run", " "], "needs a command"),
        (["--run", "true", "--no-run"], "--no-run forbids"),
        (["--overlay", ".", "--allow-no-op"], "goes with --run"),
    ],
)
def test_a_wrong_command_line_is_told(mine: SmallProject, args: list[str], words: str) -> None:
    done = mine.run("import", *args)
    assert (done.code, words in done.err) == (2, True), done.text


def test_an_executable_bit_and_a_new_and_a_removed_file_are_taken(mine: SmallProject) -> None:
    script(
        mine.at,
        "#!/bin/sh\ncd $1/engine\nchmod +x plan.py\necho A=1 > a.py\nrm lanes.py\n",
    )
    done = mine.run("import", "--run", "./deepen.sh {tree}")
    assert done.code == 0, done.text
    text = (mine.series / "deepen.patch").read_text()
    assert "old mode 100644\nnew mode 100755\n" in text
    assert "deleted file mode" in text
    assert "new file mode" in text
