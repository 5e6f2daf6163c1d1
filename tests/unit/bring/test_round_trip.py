"""export, then import into an empty series: the same effects, the same ids, in every form."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from patchkit.authoring.builder import Builder
from patchkit.authoring.importing import How, bring
from patchkit.authoring.incoming import arrive
from patchkit.authoring.sealing import Ready, seal
from patchkit.bring.export import export
from patchkit.engine.model import File
from patchkit.errors import Refused
from patchkit.series.header import Field, Header
from tests.unit.authoring.making import MOMENT, Bench, make_bench

PATHS = ["engine/lanes.py", "engine/gates.py", "engine/new file.py", "engine/ümlaut.txt"]
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" ->:[]#+."),
    min_size=1,
    max_size=30,
)
BODY = st.lists(
    st.sampled_from(
        [
            "From now on it holds.",
            "- an item",
            "> quoted",
            "Because.",
            "",
            "Fixes: nothing",
            "*** x",
        ]
    )
    | WORDS,
    max_size=4,
).map("\n".join)


@st.composite
def edits(draw: st.DrawFn) -> dict[str, tuple[str, int, bytes]]:
    """Path -> what is done (set a line, add, delete, new text), where, and with what."""
    out = {}
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=2, unique=True)):
        kind = draw(st.sampled_from(["set", "set", "insert", "drop", "mode"]))
        text = draw(st.sampled_from([b"x\n", b"From me\n", b"y\r\n", b"\xff\n", b"end"]))
        out[path] = (kind, draw(st.integers(0, 40)), text)
    return out


def edited(before: File | None, edit: tuple[str, int, bytes]) -> File | None:
    kind, at, text = edit
    if before is None:
        return File(text)
    lines = before.data.splitlines(keepends=True)
    at = min(at, len(lines))
    if kind == "mode":
        return replace(before, mode=before.mode ^ 0o111)
    if kind == "drop" and at % 5 == 0:
        return None
    lines[at : at + (kind != "insert")] = [text.rstrip(b"\n") + b"\n"] if kind != "drop" else []
    return File(b"".join(lines), before.mode)


STEPS = st.lists(st.tuples(edits(), WORDS, BODY, st.sampled_from([None, "wide"])), max_size=4)


def build(
    bench: Bench, steps: list[tuple[Mapping[str, tuple[str, int, bytes]], str, str, str | None]]
) -> Ready:
    """A series of these steps, made as every verb makes one, and written."""
    with bench.session() as (held, standing):
        builder = Builder(standing, "", MOMENT.day)
        for number, (wanted, subject, body, guard) in enumerate(steps):
            changes = {path: edited(builder.tree.get(path), edit) for path, edit in wanted.items()}
            changes = {p: f for p, f in changes.items() if f != builder.tree.get(p)}
            if not changes:
                continue
            header = Header(
                "Ann <ann@example.org>",
                MOMENT.mail,
                subject.strip(" -:[]") or "x",
                (Field("Origin", "vendor"), Field("Bug", "1")),
                body,
            )
            builder.write(f"p{number}-a.patch", header, changes, guard=guard)
        ready = seal(builder)
        held.commit(ready, "make")
        return ready


def sent(bench: Bench, form: str, to: Path) -> list[str]:
    """The exported series as files below `to`; what to give to import."""
    with bench.session() as (_, standing):
        files = export(standing.derived, standing.tree, form, standing.series.entries)
    for name, data in files.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(data)
    return [str(to)] if form == "quilt" else sorted(str(to / name) for name in files)


def taken(bench: Bench, paths: list[str]) -> Ready:
    with bench.session() as (held, standing):
        arrived = arrive(paths, standing.names, folder=str(bench.series))
        ready = bring(standing, arrived, How(), MOMENT)
        held.commit(ready, "import")
        return ready


@pytest.mark.parametrize("form", ["quilt", "am", "dir", "single"])
@given(STEPS)
@example([({"engine/lanes.py": ("set", 3, b"x\n")}, "one", "From now on", "wide")])
@settings(max_examples=15)
def test_a_series_comes_back(
    form: str, steps: list[tuple[dict[str, tuple[str, int, bytes]], str, str, str | None]]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PATCHKIT_CACHE", str(at / "cache"))
            patched.setattr(os, "fsync", lambda _: None)
            try:
                (at / "one").mkdir()
                first = build(make_bench(at / "one"), steps)
            except Refused as refusal:
                # No series: a header that no mail can carry, a guard that cuts.
                event(refusal.findings[0].name)
                return
            event(f"{len(first.series.patches)} patches")
            if not first.series.patches:
                return
            (at / "two").mkdir()
            second = taken(
                make_bench(at / "two"),
                sent(Bench(at / "one/project", at / "one/upstream"), form, at / "out"),
            )
            assert second.tree == first.tree
            one = Bench(at / "one/project", at / "one/upstream")
            two = Bench(at / "two/project", at / "two/upstream")
            if form == "single":
                assert len(second.series.patches) == 1
                return
            assert two.patches() == one.patches()
            names = [e.patch for e in first.series.entries]
            assert [e.patch for e in second.series.entries] == names
            guards = [e.guard for e in first.series.entries]
            assert [e.guard for e in second.series.entries] == guards
            if form == "quilt":
                assert (two.series / "series").read_bytes() == (one.series / "series").read_bytes()
            lock = "series.lock"
            assert (two.series / lock).read_bytes() == (one.series / lock).read_bytes()
