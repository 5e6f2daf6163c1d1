"""Native sources compiled by the build's own commands, in a folder that is configured."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.prove import configured
from patchkit.prove.compiling import Compiled, Touched, compile_all
from patchkit.upstreams.building import CONFIGURED, Recipe
from tests.conftest import SmallProject

Open = Callable[[], Any]
COMPILER = """#!/bin/sh
echo "$0 $*" >> {log}
for word in "$@"; do case $word in *.cu|*.cpp)
  if cat "$word" {at}/tree/csrc/one.h | grep -q broken; then
    echo "$word(1): error: broken" >&2; exit 1
  fi;;
esac; done
test "$(pwd)" = {at}/tree/build || {{ echo "error: in $(pwd)" >&2; exit 1; }}
"""


@pytest.fixture
def build(project: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build folder as configuring leaves it, with a source that CMake made."""
    at = tmp_path / "one place"
    (at / "tree" / "build").mkdir(parents=True)
    (project.base / "csrc").mkdir()
    for name, text in (
        ("one.h", "#define ONE 1\n"),
        ("two.cu", '#include "csrc/one.h"\nint two;\n'),
        ("host.cpp", "int host;\n"),
        ("lost.cu", "int lost;\n"),
    ):
        (project.base / "csrc" / name).write_text(text)
    for name in ("nvcc", "c++"):
        tool = tmp_path / name
        tool.write_text(COMPILER.format(log=tmp_path / "log", at=str(at).replace(" ", "\\ ")))
        tool.chmod(0o755)
    monkeypatch.setattr(configured, "recipe", lambda kind: Recipe(at=str(at)))
    return at


def ready(build: Path, tree: str) -> None:
    """The folder's list of commands and what it says of itself; files of `tree` lie there."""
    lead = build / "tree"
    (lead / "csrc").mkdir(exist_ok=True)
    (lead / "csrc" / "made.cu").write_text('#include "one.h"\n')
    rows = [
        (build.parent / "nvcc", "csrc/two.cu", "-gencode arch=compute_75,code=sm_75 -O3"),
        (build.parent / "nvcc", "csrc/made.cu", "-O3"),
        (build.parent / "c++", "csrc/host.cpp", "-MD -MT host.o -MF host.o.d -fPIC"),
    ]
    commands = [
        {
            "directory": str(lead / "build"),
            "command": f"{tool} {flags} -c '{lead / path}' -o object.o",
            "file": str(lead / path),
        }
        for tool, path, flags in rows
    ]
    (build / "commands.json").write_text(json.dumps(commands))
    facts = {"tree": tree, "device": "cuda", "commands": str(build / "commands.json")}
    (build / CONFIGURED).write_text(json.dumps(facts))


def judged(
    proving: Open, build: Path, project: SmallProject, left: str | None = None
) -> list[Compiled]:
    with proving() as p:
        touched = [
            Touched(name, p.trees[n], p.trees[n + 1], tuple(sorted(o.changes)))
            for n, (name, o) in enumerate(zip(p.derived.names, p.derived.outcomes, strict=True))
        ]
        ready(build, p.trees[-1])
        for listed, data in p.prover.trees.store.tree(p.trees[-1]).contents(
            p.prover.trees.store.tree(p.trees[-1]).walk("csrc")
        ):
            (build / "tree" / listed.path).write_bytes(data if left is None else left.encode())
        return compile_all(p.prover, None, touched)


def test_the_commands_of_the_build_are_taken_for_both_generations(
    project: SmallProject, proving: Open, build: Path, tmp_path: Path
) -> None:
    project.edited("one", "csrc/two.cu", "int two;\n", "int three;\n")
    project.edited("two", "csrc/host.cpp", "int host;\n", "int guest;\n")
    one, two = judged(proving, build, project)
    assert (one.sources, one.wrong, two.sources, two.wrong) == (1, (), 1, ())
    first, second = (tmp_path / "log").read_text().splitlines()
    assert "arch=compute_80,code=sm_80" in first
    assert "arch=compute_90,code=sm_90" in first
    assert "75" not in first
    assert "-O3" not in first
    assert "-MF" not in second
    assert "gencode" not in second
    assert not os.path.exists(build / "tree" / "build" / "object.o")


def test_a_source_that_no_longer_compiles_is_named_and_the_folder_is_as_before(
    project: SmallProject, proving: Open, build: Path
) -> None:
    project.edited("one", "csrc/two.cu", "int two;\n", "int two; // broken\n")
    project.edited("two", "csrc/two.cu", "int two; // broken\n", "int two; // mended\n")
    one, two = judged(proving, build, project, left="broken by a run that was killed\n")
    assert one.wrong == ("csrc/two.cu does not compile: csrc/two.cu(1): error: broken",)
    assert two.wrong == ()
    assert "mended" in (build / "tree" / "csrc" / "two.cu").read_text()


def test_a_header_is_compiled_with_a_source_beside_it(
    project: SmallProject, proving: Open, build: Path
) -> None:
    project.edited("one", "csrc/one.h", "#define ONE 1\n", "#define ONE 1 // broken\n")
    project.edited("lost", "csrc/lost.cu", "int lost;\n", "int found;\n")
    one, lost = judged(proving, build, project)
    assert one.wrong == ("csrc/made.cu does not compile: csrc/made.cu(1): error: broken",)
    assert lost.sources == 0
    assert "csrc/lost.cu: no command compiles it" in lost.said


@pytest.mark.parametrize(
    "facts", ["", "{}", '{"device": "cpu", "tree": "0", "commands": "x"}', '{"device": "cuda"}']
)
def test_what_is_not_configured_for_cuda_is_not_taken(
    project: SmallProject, proving: Open, build: Path, facts: str
) -> None:
    project.edited("one", "csrc/two.cu", "int two;\n", "int three;\n")
    with proving() as p:
        known, store = p.prover.trees.known, p.prover.trees.store
        assert configured.here(known, store) is None
        (build / CONFIGURED).write_text(facts)
        assert configured.here(known, store) is None
        ready(build, "f" * 40)
        assert configured.here(known, store) is None, "a tree of another project"
