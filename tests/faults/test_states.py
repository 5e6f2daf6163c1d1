"""Any commands in any order: a successful one leaves `check` clean, a failed one every byte.

PATCHKIT_LONG=200 tries two hundred long runs in place of a few short ones.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.faults.matrix import different
from tests.faults.place import Ended, Place, warm_up
from tests.faults.scenes import DAY, WHO

LONG = int(os.environ.get("PATCHKIT_LONG", "0"))
FILES = ("a.py", "b.py")
LINES = 24
FRESH = ("one", "two", "three", "four")
WORK = "mine/build/edit-base/engine"
REBASING = "mine/build/rebase-base-next/engine"

names = st.sampled_from([*FRESH, "no-such"])
files = st.sampled_from(FILES)
numbers = st.integers(1, LINES - 2)
words = st.sampled_from(["red", "green", "line 3", ""])


def begin(place: Place) -> None:
    """A project of two releases, and a folder like the first."""
    for release, changed in (("base", ()), ("next", (4, 12))):
        at = place.at / release / "engine"
        at.mkdir(parents=True)
        for name in FILES:
            lines = [f"line {n}\n" for n in range(LINES)]
            for number in changed:
                lines[number] = f"line {number} of the next release\nand one more\n"
            (at / name).write_text("".join(lines))
    shutil.copytree(place.at / "base", place.at / "tree")
    (place.at / "mine").mkdir()
    (place.at / "loose").mkdir()
    place.must("init", "--upstream", "engine", "--source", "../base")
    pins = place.at / "mine" / "pins.toml"
    text = pins.read_text().replace("../base", "../{pin}")
    pins.write_text(f'{text}\n[pins.next]\nupstream = "engine"\n')
    place.must("check")


class Commands(RuleBasedStateMachine):
    """A person who types whatever comes to mind."""

    place: ClassVar[Place]

    @initialize()
    def start(self) -> None:
        self.place.restore()
        self.rebasing = False

    # -- typing ------------------------------------------------------------------------------
    def types(self, *args: str, may_leave: str = "") -> Ended:
        """One command. may_leave: what a failing one may have made, as a pattern of paths."""
        before = self.place.state()
        done = self.place.run(*args)
        note(f"patchkit {' '.join(args)} -> {done.code}")
        assert done.code in (0, 1, 2, 3), done.said
        assert "Traceback" not in done.said, done.said
        assert "fault of patchkit itself" not in done.said, done.said
        if done.code == 0:
            self.sound(done)
        else:
            assert "rror: " in done.said or may_leave, done.said
            left = different(self.place.state(), before)
            odd = {p: d for p, d in left.items() if not may_leave or not re.search(may_leave, p)}
            assert not odd, f"{args} failed and left {odd}\n{done.said}"
        return done

    def sound(self, done: Ended) -> None:
        """`check` is clean, unless a rebase has begun the folder of the next release."""
        checked = self.place.run("check", "--pin", "base")
        assert checked.code == 0, f"{done.said}\nthen check:\n{checked.said}"
        if (self.place.at / "mine" / "series" / "next" / "series.lock").exists():
            checked = self.place.run("check", "--pin", "next")
            assert checked.code == 0, f"{done.said}\nthen check --pin next:\n{checked.said}"

    def series(self) -> list[str]:
        at = self.place.at / "mine" / "series" / "base" / "series"
        rows = at.read_text().splitlines() if at.exists() else []
        return [row.split()[0].removesuffix(".patch") for row in rows if row and row[0] != "#"]

    def edit_line(self, folder: str, file: str, number: int, text: str) -> bool:
        at = self.place.at / folder / file
        if not at.exists():
            return False
        lines = at.read_text().splitlines(keepends=True)
        if number < len(lines):
            lines[number] = f"{text}\n"
        at.write_text("".join(lines))
        return True

    # -- making patches ----------------------------------------------------------------------
    @rule(name=names, file=files, number=numbers, text=words)
    def makes_a_patch(self, name: str, file: str, number: int, text: str) -> None:
        if self.types("new", name, *DAY, *WHO).code == 0:
            self.edit_line(WORK, file, number, text)
            self.types("refresh", *DAY)

    @rule(name=names, file=files, number=numbers, text=words, said=st.booleans())
    def edits_a_patch(self, name: str, file: str, number: int, text: str, said: bool) -> None:
        if self.types("edit", name).code == 0:
            self.edit_line(WORK, file, number, text)
            self.types("refresh", *DAY, *([name] if said else []))

    @rule(file=files, number=numbers, text=words)
    def edits_the_work_tree_and_refreshes(self, file: str, number: int, text: str) -> None:
        if self.edit_line(WORK, file, number, text):
            self.types("refresh", *DAY)

    @rule(name=names)
    def drops(self, name: str) -> None:
        self.types("drop", name)

    @rule(name=names, other=names)
    def renames(self, name: str, other: str) -> None:
        self.types("rename", name, other)

    @rule(name=names, after=names)
    def moves(self, name: str, after: str) -> None:
        self.types("move", name, "--after", after)

    @rule(name=names, file=files, number=numbers, text=words, replace=st.booleans())
    def imports(self, name: str, file: str, number: int, text: str, replace: bool) -> None:
        self.loose(name, file, number, text)
        more = ["--replace"] if replace else []
        self.types("import", f"../loose/{name}.patch", *DAY, *WHO, *more)

    def loose(self, name: str, file: str, number: int, text: str) -> None:
        """A patch of one line of the bare release."""
        (self.place.at / "loose" / f"{name}.patch").write_text(
            f"--- a/engine/{file}\n+++ b/engine/{file}\n@@ -{number},3 +{number},3 @@\n"
            f" line {number - 1}\n-line {number}\n+{text}\n line {number + 1}\n"
        )

    # -- using them --------------------------------------------------------------------------
    @rule()
    def locks(self) -> None:
        self.types("lock", "--pin", "base")

    @rule(folder=st.sampled_from(["", "../made", "../tree"]))
    def applies(self, folder: str) -> None:
        self.types("apply", "--pin", "base", *(["--to", folder] if folder else []))

    @rule(name=names, file=files, number=numbers, text=words)
    def applies_a_loose_patch(self, name: str, file: str, number: int, text: str) -> None:
        self.loose(name, file, number, text)
        self.types("apply", f"../loose/{name}.patch", "--to", "../tree")

    @rule()
    def reverts(self) -> None:
        self.types("revert", "--to", "../tree")

    # -- rebasing ----------------------------------------------------------------------------
    @rule()
    def rebases(self) -> None:
        self.types("rebase", "--pin", "base", "--onto", "next", *DAY, may_leave="rebase-base-next")

    @rule(settle=st.booleans())
    def goes_on(self, settle: bool) -> None:
        if settle:
            for file in FILES:
                at = self.place.at / REBASING / file
                if at.exists():
                    text = re.sub(r"(?m)^(<{7}|\|{7}|={7}|>{7}).*\n", "", at.read_text())
                    at.write_text(text)
        self.types("rebase", "--continue", may_leave="rebase-base-next")

    @rule(name=names, word=st.sampled_from(["--skip", "--drop"]))
    def leaves_a_patch_out(self, name: str, word: str) -> None:
        more = ["--why", "not needed"] if word == "--drop" else []
        self.types("rebase", word, name, *more, may_leave="rebase-base-next")

    @rule()
    def gives_the_rebase_up(self) -> None:
        self.types("rebase", "--abort")

    @precondition(lambda self: (self.place.at / "mine/series/next").exists())
    @rule()
    def forgets_the_next_release(self) -> None:
        shutil.rmtree(self.place.at / "mine/series/next")
        shutil.rmtree(self.place.at / "mine/build", ignore_errors=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    warm_up()
    made = Place(Path(tmp_path_factory.mktemp("states")) / "it")
    begin(made)
    made.keep()
    return made


def test_a_successful_command_leaves_check_clean_and_a_failed_one_every_byte(place: Place) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Commands.place = place
    run_state_machine_as_test(
        Commands,
        settings=settings(
            max_examples=LONG or 3,
            stateful_step_count=40 if LONG else 14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if LONG else [])],
            derandomize=not LONG,
        ),
    )
