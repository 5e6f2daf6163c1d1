"""Any run of verbs: one that succeeds leaves check clean, one that fails leaves every byte."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from patchkit.authoring.arrange import drop, move, rename
from patchkit.authoring.importing import How, bring, tidy
from patchkit.authoring.incoming import arrive
from patchkit.authoring.mend import mend
from patchkit.authoring.sealing import Ready
from patchkit.authoring.session import Session
from patchkit.authoring.standing import Standing
from patchkit.errors import PatchkitError
from tests.unit.authoring.making import AUTHOR, MOMENT, Bench, make_bench

PICK = st.integers(0, 5)
PATHS = st.sampled_from(["one", "two", "sub/three"])
GUARD = st.sampled_from([None, None, "fast"])
KINDS = st.sampled_from(["edit", "edit", "insert", "delete line", "delete", "create"])
EDITS = st.lists(st.tuples(PATHS, st.integers(0, 11), KINDS), min_size=1, max_size=3)
HOW = How(author=AUTHOR)
SMALL = {path: "".join(f"{path} {n}\n" for n in range(12)) for path in ("one", "two", "sub/three")}


Edits = list[tuple[str, int, str]]


class Series(RuleBasedStateMachine):
    """A person at work on a tiny project. The bytes are looked at after every step."""

    home: Path
    fresh = 0

    def __init__(self) -> None:
        super().__init__()
        self.at = Path(tempfile.mkdtemp(dir=self.home))
        self.bench: Bench = make_bench(self.at, SMALL)
        pins = self.bench.root / "pins.toml"
        pins.write_text(pins.read_text() + '[stacks.fast]\nguards = ["fast"]\n')
        self.aside = self.at / "aside"
        self.changed = True

    def teardown(self) -> None:
        shutil.rmtree(self.at)

    # -- doing --------------------------------------------------------------------------------
    def attempt(self, action: Callable[[], object]) -> None:
        before = self.bench.snapshot()
        try:
            action()
        except PatchkitError as error:
            refusal = error
        else:
            self.changed = self.bench.snapshot() != before
            return
        assert refusal.findings
        assert all(f.message for f in refusal.findings)
        assert self.bench.snapshot() == before, "a failed command wrote something"

    def run(self, make: Callable[[Session, Standing], Ready]) -> Callable[[], None]:
        def action() -> None:
            with self.bench.session() as (held, standing):
                held.commit(make(held, standing), "test")

        return action

    @initialize()
    def begin(self) -> None:
        """Three patches: b builds on a, c stands apart."""
        self.bench.add_patch("a", ("one", "one 5\n", "one five\n"))
        self.bench.add_patch("b", ("one", "one five\n", "one V\n"), ("two", "two 3\n", "III\n"))
        self.bench.add_patch("c", ("two", "two 10\n", "two ten\n"), guard="fast")

    def names(self) -> list[str]:
        text = (self.bench.series / "series").read_text()
        return [line.split()[0].removesuffix(".patch") for line in text.splitlines()]

    def pick(self, number: int | None) -> str | None:
        """One of the patches there are; a name that there is not, now and then."""
        names = [*self.names(), "nothing"]
        return None if number is None else names[number % len(names)]

    @invariant()
    def check_is_clean(self) -> None:
        if self.changed:
            assert self.bench.check() == []
            assert not (self.bench.root / ".patchkit").exists()
            self.changed = False

    # -- what a person does -------------------------------------------------------------------
    @rule(guard=GUARD, after=PICK | st.none(), edits=EDITS)
    def make(self, guard: str | None, after: int | None, edits: Edits) -> None:
        self.give_up()
        Series.fresh += 1
        name = f"p{Series.fresh}"
        self.attempt(lambda: self.bench.new(name, guard=guard, after=self.pick(after)))
        self.work(edits)
        self.refresh()

    @rule(number=PICK, edits=EDITS)
    def change(self, number: int, edits: Edits) -> None:
        self.give_up()
        self.attempt(lambda: self.bench.edit(self.pick(number)))
        self.work(edits)
        self.refresh()

    @rule(number=PICK, edits=EDITS, how=st.sampled_from(["amend", "fixup", "plain", "drop"]))
    def use_git(self, number: int, edits: Edits, how: str) -> None:
        self.give_up()
        self.attempt(self.bench.edit)
        if not self.bench.tree.exists():
            return
        self.work(edits)
        words = {"amend": ["--amend", "--no-edit"], "plain": ["-m", f"more {Series.fresh}"]}
        subject = self.bench.git("log", "--format=%s", "base..").splitlines()
        fixup = ["-m", f"fixup! {subject[number % len(subject)]}"]
        self.bench.git("commit", "-qa", "--allow-empty", *words.get(how, fixup))
        if how == "drop":
            self.bench.git("reset", "-q", "--hard", "HEAD~2")
        self.attempt(self.bench.from_commits)

    @rule(number=PICK | st.none())
    def edit(self, number: int | None) -> None:
        self.attempt(lambda: self.bench.edit(self.pick(number)))

    @rule(edits=EDITS)
    def work(self, edits: Edits) -> None:
        for path, line, kind in edits if self.bench.tree.exists() else ():
            Series.fresh += 1
            at, text = self.bench.tree / path, f"text {Series.fresh}\n"
            if kind == "create":
                (self.bench.tree / f"new-{line}").write_text(text)
                self.bench.git("add", "-A")
            elif at.exists():
                lines = at.read_text().splitlines(keepends=True)
                line = min(line, max(len(lines) - 1, 0))
                if kind == "delete":
                    at.unlink()
                    continue
                lines[line : line + (kind != "insert")] = [] if kind == "delete line" else [text]
                at.write_text("".join(lines))

    @rule()
    def refresh(self) -> None:
        if (self.bench.tree / ".git/patchkit/edit.json").exists():
            self.attempt(self.bench.refresh)

    @rule()
    def give_up(self) -> None:
        """A person throws the work tree away, as nothing else helps after a refusal."""
        shutil.rmtree(self.bench.tree, ignore_errors=True)

    @rule(number=PICK, after=PICK | st.none())
    def move(self, number: int, after: int | None) -> None:
        name, behind = str(self.pick(number)), self.pick(after)
        self.attempt(self.run(lambda _, standing: move(standing, name, after=behind)))

    @rule(number=PICK)
    def drop(self, number: int) -> None:
        name = str(self.pick(number))
        self.attempt(self.run(lambda _, standing: drop(standing, [name])))

    @rule(number=PICK, to=st.sampled_from(["a", "x", "y"]))
    def rename(self, number: int, to: str) -> None:
        name = str(self.pick(number))
        self.attempt(self.run(lambda _, standing: rename(standing, name, to)))

    @rule(number=PICK | st.none())
    def tidy(self, number: int | None) -> None:
        name = self.pick(number)
        names = None if name is None else [name]
        self.attempt(self.run(lambda _, standing: tidy(standing, names, HOW, MOMENT)))

    @rule()
    def lint_fix(self) -> None:
        self.attempt(self.run(lambda held, standing: mend(held, standing.pin)))

    @rule()
    def set_aside(self) -> None:
        """A copy of the series, as export would give it."""
        shutil.rmtree(self.aside, ignore_errors=True)
        shutil.copytree(self.bench.series, self.aside)

    @rule(number=PICK | st.none(), replace=st.booleans())
    def bring_back(self, number: int | None, replace: bool) -> None:
        path = self.aside
        if number is not None and path.exists():
            files = sorted(path.glob("*.patch"))
            path = files[number % len(files)] if files else path / "nothing"
        if not path.exists():
            return
        how = How(author=AUTHOR, replace=replace)

        def make(held: Session, standing: Standing) -> Ready:
            arrived = arrive([str(path)], standing.names, folder=str(self.bench.series))
            return bring(standing, arrived, how, MOMENT)

        self.attempt(self.run(make))

    @rule(data=st.sampled_from([b"x\n", b"--- a/one\n+++ b/one\n@@ -1 +1 @@\n-no\n+yes\n"]))
    def bring_rubbish(self, data: bytes) -> None:
        at = self.at / "rubbish.patch"
        at.write_bytes(data)
        self.attempt(
            self.run(
                lambda _, standing: bring(standing, arrive([str(at)], standing.names), HOW, MOMENT)
            )
        )

    @rule(copy=st.booleans())
    def nothing_changes_twice(self, copy: bool) -> None:
        """Taking back a copy of the series, or tidying it, changes no byte."""
        before = self.bench.snapshot()
        if copy:
            self.set_aside()
            self.bring_back(None, False)
        else:
            self.tidy(None)
        assert self.bench.snapshot() == before


def machine(home: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> type[Series]:
    monkeypatch.setenv("PATCHKIT_CACHE", os.fspath(cache))
    Series.home = home
    return Series


def test_any_run_of_verbs(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine(tmp_path, monkeypatch, cache).TestCase
    found.settings = settings(
        max_examples=6,
        stateful_step_count=12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    found().runTest()


@pytest.mark.slow
def test_many_runs_of_verbs(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine(tmp_path, monkeypatch, cache).TestCase
    found.settings = settings(
        max_examples=80,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    found().runTest()
