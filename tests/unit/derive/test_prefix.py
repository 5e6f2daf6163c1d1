"""What was applied before is not applied again, and never decides what a tree is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.series import Made, many_patches, with_last_changed
from patchkit.check.locked import Prepared, prepare
from patchkit.check.locking import relock
from patchkit.derive import derive as deriving
from patchkit.derive.base import open_bases
from patchkit.derive.prefix import Memory, marks_of
from patchkit.derive.project import find
from patchkit.derive.selection import Selection
from patchkit.engine.chain import Step, apply_chain
from patchkit.series import folder
from patchkit.series.lockfile import BASE, Blob, Chain
from patchkit.series.lockfile import Step as State
from patchkit.series.lockjson import dumps, loads
from patchkit.store.results import Result
from tests.conftest import SmallProject


@dataclass
class Work:
    """What a run really did: patches parsed and applied."""

    parsed: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    done = Work()
    parse = folder.parse

    def parsing(data: bytes, name: str, **options: bool) -> Any:
        done.parsed.append(name)
        return parse(data, name, **options)

    def applying(tree: Any, steps: list[Step], rule: Any) -> Any:
        done.applied += [step.patch.name for step in steps if step.selected]
        return apply_chain(tree, steps, rule)

    monkeypatch.setattr(folder, "parse", parsing)
    monkeypatch.setattr(deriving, "apply_chain", applying)
    return done


def ready(project: SmallProject, stack: str | None = None, upto: str | None = None) -> Prepared:
    """Prepare the whole series, or a stack of it."""
    found = find(project.at)
    selection = Selection(found.stack(stack) if stack else None, upto)
    with open_bases(found) as bases:
        return prepare(found, found.pins.pin("v1.0"), selection, bases, source=str(project.base))


def fresh(project: SmallProject, tmp_path: Path, **selected: str) -> Prepared:
    """The same with an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATCHKIT_CACHE", str(tmp_path / "another-cache"))
        shutil.rmtree(tmp_path / "another-cache", ignore_errors=True)
        return ready(project, **selected)


def lock(project: SmallProject) -> None:
    found = find(project.at)
    with open_bases(found) as bases:
        done = relock(found, "v1.0", bases, source=str(project.base))
    assert done.state != "refused", done.findings


def same(one: Prepared, two: Prepared) -> bool:
    return (one.rows, one.chain, one.findings) == (two.rows, two.chain, two.findings)


def test_a_second_run_neither_parses_nor_applies_and_says_the_same(
    locked: SmallProject, work: Work, tmp_path: Path
) -> None:
    first = ready(locked)
    assert len(work.applied) == 3
    work.applied.clear()
    work.parsed.clear()
    again = ready(locked)
    assert work == Work()
    assert same(first, again)
    assert same(again, fresh(locked, tmp_path))


def test_of_a_changed_series_only_what_follows_the_change_is_applied(
    locked: SmallProject, work: Work, tmp_path: Path
) -> None:
    ready(locked)
    patch = locked.series / "later.patch"
    patch.write_bytes(patch.read_bytes().replace(b"return 90", b"return 91"))
    lock(locked)
    work.applied.clear()
    work.parsed.clear()
    again = ready(locked)
    assert work == Work(["later.patch"], ["later.patch"])
    assert same(again, fresh(locked, tmp_path))


def test_a_prefix_serves_upto_and_the_other_way_round(
    locked: SmallProject, work: Work, tmp_path: Path
) -> None:
    short = ready(locked, upto="wider")
    work.applied.clear()
    assert same(ready(locked), fresh(locked, tmp_path))
    assert work.applied[0] == "later.patch"
    work.applied.clear()
    assert same(ready(locked, upto="wider"), short)
    assert work.applied == []


def test_behind_a_left_out_patch_the_whole_series_is_applied_again(
    locked: SmallProject, work: Work, tmp_path: Path
) -> None:
    ready(locked, stack="default")
    work.applied.clear()
    assert same(ready(locked, stack="default"), fresh(locked, tmp_path, stack="default"))
    assert work.applied == ["deeper.patch", "later.patch"]  # by the fresh one alone
    patch = locked.series / "later.patch"
    patch.write_bytes(patch.read_bytes().replace(b"return 90", b"return 91"))
    lock(locked)
    work.applied.clear()
    again = ready(locked, stack="default")
    assert work.applied == ["deeper.patch", "later.patch"]
    assert same(again, fresh(locked, tmp_path, stack="default"))


Poison = Callable[[Result], Result]


@pytest.mark.parametrize(
    "poison",
    [
        lambda r: replace(r, ids=(r.ids[0], "0" * 40)),
        lambda r: replace(r, ids=("0" * 40, r.ids[1])),
        lambda r: replace(r, text="0" * 32 + r.text[32:]),
        lambda r: replace(r, text="- 1 1 1"),
    ],
    ids=["tree", "commit", "mark", "left-out"],
)
def test_a_wrong_memory_is_not_believed(
    locked: SmallProject, work: Work, tmp_path: Path, poison: Poison
) -> None:
    _poison(locked, lambda results: {key: poison(r) for key, r in results.items()})
    work.applied.clear()
    assert same(ready(locked), fresh(locked, tmp_path))
    assert len(work.applied) == 6


def test_the_memory_of_another_prefix_is_not_believed(
    locked: SmallProject, work: Work, tmp_path: Path
) -> None:
    def turned(results: dict[str, Result]) -> dict[str, Result]:
        return dict(zip(results, reversed(results.values()), strict=True))

    _poison(locked, turned)
    assert same(ready(locked), fresh(locked, tmp_path))


def _poison(
    project: SmallProject, change: Callable[[dict[str, Result]], dict[str, Result]]
) -> None:
    """Apply once, then change what is remembered of it."""
    kept: list[tuple[Memory, dict[str, Result]]] = []
    with pytest.MonkeyPatch.context() as patch:

        def spy(self: Any, group: str, results: dict[str, Result]) -> None:
            kept.append((self, dict(results)))
            self.results.add(group, change(dict(results)))

        patch.setattr("patchkit.store.repo.Store.remember_all", spy)
        ready(project)
    assert len(kept) == 1


def test_lost_objects_are_made_again(locked: SmallProject, work: Work, tmp_path: Path) -> None:
    first = ready(locked)
    for pack in (tmp_path / "the-cache" / "store-1.git" / "objects" / "pack").iterdir():
        pack.unlink()
    assert same(ready(locked), first)


def test_a_lock_that_promises_something_else_is_said_though_all_is_remembered(
    locked: SmallProject,
) -> None:
    first = ready(locked)
    assert first.chain is not None
    at = locked.series / "series.lock"
    text = at.read_bytes()
    blob = next(iter(loads(text).series.paths.values()))[-1].blob
    assert blob is not None
    for old in (blob.oid, first.chain.tree):
        at.write_bytes(text.replace(old.encode(), b"0" * 40))
        again = ready(locked)
        assert again.chain is None
        assert {f.name for f in again.findings if not f.note} == {"lock-stale"}


def test_stacks_whose_guards_changed_are_said_though_all_is_remembered(
    locked: SmallProject,
) -> None:
    ready(locked, stack="wide")
    pins = locked.at / "pins.toml"
    pins.write_text(pins.read_text().replace('guards = ["wide"]', "guards = []"))
    again = ready(locked, stack="wide")
    assert again.chain is None
    assert any("does not apply the patches" in f.message for f in again.findings)


def test_a_base_that_the_lock_does_not_know_is_not_remembered(
    locked: SmallProject, work: Work
) -> None:
    at = locked.series / "series.lock"
    known = loads(at.read_bytes())
    bare = [replace(c, trees={}) for c in (known.series, *known.stacks.values())]
    stacks = dict(zip(known.stacks, bare[1:], strict=True))
    at.write_bytes(dumps(replace(known, series=bare[0], stacks=stacks)))
    first = ready(locked)
    work.applied.clear()
    assert same(ready(locked), first)
    assert len(work.applied) == 3


def test_a_note_on_a_patch_is_said_every_time(locked: SmallProject) -> None:
    patch = locked.series / "later.patch"
    found = re.search(rb"@@ -(\d+),7 \+\d+,7 @@", patch.read_bytes())
    assert found is not None
    # One line of context more than the hunk counts: accepted, and said.
    patch.write_bytes(
        patch.read_bytes().replace(found[0], b"@@ -%s,6 +%s,6 @@" % (found[1], found[1]))
    )
    lock(locked)
    first = ready(locked)
    assert any(f.where.patch == "later.patch" for f in first.findings)
    assert same(ready(locked), first)


def test_a_mark_tells_patches_apart_that_leave_the_same_files() -> None:
    one, two = Blob(0o100644, "1" * 40), Blob(0o100644, "2" * 40)
    steps = (State(BASE, one), State("a", two), State("b", one), State("c", two))
    marks = marks_of(Chain(("a", "b", "c", "d"), {}, {"x": steps}))
    assert marks["a"] == marks["c"] != marks["b"]
    assert len({marks[name] for name in "abd"}) == 3


def write_series(project: SmallProject, made: Made) -> None:
    project.series.mkdir(parents=True, exist_ok=True)
    for name, data in made.patches:
        (project.series / name).write_bytes(data)
    names = "".join(f"{name}\n" for name, _ in made.patches)
    (project.series / "series").write_text(names)


def test_warm_and_cold_give_the_same_whatever_came_before(
    project: SmallProject, tmp_path: Path
) -> None:
    files: dict[str, bytes] = {}
    for number in range(8):
        lines = "".join(f"def step_{number}_{n}(): return {n * number}\n" for n in range(300))
        files[f"engine/part_{number}.py"] = lines.encode()
        (project.base / "engine" / f"part_{number}.py").write_text(lines)
    whole = many_patches(files, 6)
    short = replace(whole, patches=whole.patches[:4])
    other = with_last_changed(short)
    for made in (whole, short, other, whole, with_last_changed(whole), short, whole):
        write_series(project, made)
        lock(project)
        warm, cold = ready(project), fresh(project, tmp_path)
        assert warm.ok
        assert same(warm, cold)
