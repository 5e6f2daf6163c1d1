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
from patchkit.files import atomic, root
from tests.unit.authoring.making import AUTHOR, MOMENT, Bench, make_bench

NAMES = st.sampled_from("abcdef")
PATHS = st.sampled_from(["one", "two", "sub/three"])
LINE = st.integers(0, 11)
GUARD = st.sampled_from([None, None, "fast"])
HOW = How(author=AUTHOR)
SMALL = {path: "".join(f"{path} {n}\n" for n in range(12)) for path in ("one", "two", "sub/three")}
KINDS = st.sampled_from(["edit", "edit", "edit", "insert", "delete line", "delete", "create"])


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
        self.bench.add_patch("a", ("one", "one 5\n", "one five\n"))

    @invariant()
    def check_is_clean(self) -> None:
        if self.changed:
            assert self.bench.check() == []
            assert not (self.bench.root / ".patchkit").exists()
            self.changed = False

    # -- what a person does -------------------------------------------------------------------
    @rule(name=NAMES, guard=GUARD, after=NAMES | st.none())
    def new(self, name: str, guard: str | None, after: str | None) -> None:
        self.attempt(lambda: self.bench.new(name, guard=guard, after=after))

    @rule(name=NAMES | st.none())
    def edit(self, name: str | None) -> None:
        self.attempt(lambda: self.bench.edit(name))

    @rule(path=PATHS, line=LINE, kind=KINDS)
    def work(self, path: str, line: int, kind: str) -> None:
        at = self.bench.tree / path
        if not self.bench.tree.exists():
            return
        Series.fresh += 1
        text = f"text {Series.fresh}\n"
        if kind == "create":
            (self.bench.tree / f"new-{line}").write_text(text)
            self.bench.git("add", "-A")
            return
        if not at.exists():
            return
        lines = at.read_text().splitlines(keepends=True)
        line = min(line, len(lines) - 1)
        if kind == "delete":
            at.unlink()
        elif not lines:
            at.write_text(text)
        elif kind == "delete line":
            del lines[line]
            at.write_text("".join(lines))
        else:
            lines[line : line + (kind == "edit")] = [text]
            at.write_text("".join(lines))

    @rule(guard=GUARD)
    def refresh(self, guard: str | None) -> None:
        if (self.bench.tree / ".git/patchkit/edit.json").exists():
            self.attempt(lambda: self.bench.refresh(guard=guard))

    @rule()
    def refresh_from_commits(self) -> None:
        if (self.bench.tree / ".git/patchkit/edit.json").exists():
            self.bench.git("commit", "-qam", "more work", "--allow-empty")
            self.attempt(self.bench.from_commits)

    @rule()
    def give_up(self) -> None:
        """A person throws the work tree away, as nothing else helps after a refusal."""
        shutil.rmtree(self.bench.tree, ignore_errors=True)

    @rule(name=NAMES, after=NAMES | st.none())
    def move(self, name: str, after: str | None) -> None:
        self.attempt(self.run(lambda _, standing: move(standing, name, after=after)))

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        self.attempt(self.run(lambda _, standing: drop(standing, [name])))

    @rule(name=NAMES, to=NAMES)
    def rename(self, name: str, to: str) -> None:
        self.attempt(self.run(lambda _, standing: rename(standing, name, to)))

    @rule(name=NAMES | st.none())
    def tidy(self, name: str | None) -> None:
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

    @rule(name=NAMES | st.none(), replace=st.booleans())
    def bring_back(self, name: str | None, replace: bool) -> None:
        path = self.aside if name is None else self.aside / f"{name}.patch"
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
    # The disk is not what is tried here, and waiting for it takes most of the time.
    monkeypatch.setattr(root.os, "fsync", lambda _: None)
    monkeypatch.setattr(atomic.os, "fsync", lambda _: None)
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
