"""What is touched compiles, imports, and is no worse under pyflakes' rules than before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.prove import compiling, run
from patchkit.prove.compiling import Compiled, Touched, compile_all
from patchkit.prove.environment import Environment
from patchkit.upstreams import Proving
from tests.conftest import SmallProject

Open = Callable[[], Any]


def judged(proving: Open, lint: Environment | None = None) -> list[Compiled]:
    with proving() as p:
        touched = [
            Touched(name, p.trees[n], p.trees[n + 1], tuple(sorted(o.changes)))
            for n, (name, o) in enumerate(zip(p.derived.names, p.derived.outcomes, strict=True))
        ]
        return compile_all(p.prover, lint, touched)


@pytest.fixture
def flakes(tmp_path: Path) -> Environment:
    """A stand-in for pyflakes: it dislikes every line that begins with `import`."""
    tool = tmp_path / "pyflakes-python"
    tool.write_text(
        '#!/bin/sh\nshift 2\nfor file in "$@"; do grep -n ^import "$file" | '
        "sed \"s|^\\([0-9]*\\):\\(.*\\)|$file:\\1:1: '\\2' imported but unused|\"; done\n"
    )
    tool.chmod(0o755)
    return Environment(str(tool), "", False)


def test_what_is_as_before_is_no_worse(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    (found,) = judged(proving)
    assert (found.files, found.modules, found.wrong) == (1, 1, ())


def test_a_file_that_does_not_compile_is_named(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = = 3\n")
    (found,) = judged(proving)
    assert found.wrong[0].startswith("engine/plan.py does not compile: invalid syntax")


def test_a_module_that_no_longer_imports_is_named(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "import no_such_thing\n")
    (found,) = judged(proving)
    assert found.wrong == (
        "engine.plan cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'",
    )


def test_a_module_that_imports_on_neither_tree_is_said(
    project: SmallProject, proving: Open
) -> None:
    (project.base / "engine" / "gpu.py").write_text("import no_gpu\nWIDTH = 1\n")
    project.edited("wider", "engine/gpu.py", "WIDTH = 1\n", "WIDTH = 2\n")
    (found,) = judged(proving)
    assert found.wrong == ()
    assert found.modules == 0
    assert any("engine.gpu imports on neither tree" in words for words in found.said)


def test_a_new_module_has_to_import(project: SmallProject, proving: Open) -> None:
    patch = project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    new = "--- /dev/null\n+++ b/engine/new.py\n@@ -0,0 +1 @@\n+import no_gpu\n"
    patch.write_text(f"{patch.read_text()}{new}")
    (found,) = judged(proving)
    assert found.wrong == (
        "engine.new cannot be imported: ModuleNotFoundError: No module named 'no_gpu'",
    )


def test_a_module_that_ends_the_process_is_named(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "import os\nos._exit(7)\n")
    project.edited("wider", "engine/lanes.py", "    return 2\n", "    return 20\n")
    deeper, wider = judged(proving)
    assert deeper.wrong == ("engine.plan cannot be imported: its import ends the process",)
    assert wider.wrong == ()


def test_a_module_that_does_not_come_to_an_end_is_named(
    project: SmallProject, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "while True:\n    pass\n")
    monkeypatch.setattr(run, "CPU", 2)
    (found,) = judged(proving)
    assert found.wrong == ("engine.plan cannot be imported: its import ends the process",)


def test_what_the_prelude_made_stays(
    project: SmallProject, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    prelude = (
        "import sys, weakref\nclass Registered: pass\nkept = Registered()\n"
        "sys.there = weakref.ref(kept)\n"
    )
    monkeypatch.setattr(compiling, "proving", lambda known: Proving(prelude=prelude))
    text = "DEPTH = 3\nimport sys\nassert sys.there() is not None\n"
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", text)
    (found,) = judged(proving)
    assert (found.modules, found.wrong) == (1, ())


def test_in_an_import_cycle_the_other_may_go_first(project: SmallProject, proving: Open) -> None:
    (project.base / "engine" / "b.py").write_text("from engine.z import X\nB = X\n")
    (project.base / "engine" / "z.py").write_text("X = 1\nfrom engine.b import B\n")
    project.edited("one", "engine/b.py", "B = X\n", "B = X + 1\n")
    project.edited("two", "engine/z.py", "X = 1\n", "X = 2\n")
    found = judged(proving)
    assert [(each.modules, each.wrong) for each in found] == [(1, ()), (1, ())]


def test_only_what_pyflakes_did_not_say_before_is_worse(
    project: SmallProject, proving: Open, flakes: Environment
) -> None:
    (project.base / "engine" / "old.py").write_text("import os\n\n\nWIDTH = 1\n")
    project.edited("wider", "engine/old.py", "import os\n", "# moved down\nimport os\n")
    project.edited("deeper", "engine/old.py", "WIDTH = 1\n", "import re\nWIDTH = 1\n")
    wider, deeper = judged(proving, flakes)
    assert wider.wrong == ()
    assert deeper.wrong == ("engine/old.py: 'import re' imported but unused",)


def test_without_pyflakes_that_is_said(project: SmallProject, proving: Open) -> None:
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    (found,) = judged(proving)
    assert found.said == ("pyflakes' rules: the interpreter has no pyflakes",)


@pytest.fixture
def nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for nvcc: it refuses a source that says broken, and logs its flags."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "nvcc"
    tool.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/flags\nfor a in "$@"; do case $a in *.cu) '
        'if grep -q broken "$a"; then echo "$a(1): error: broken" >&2; exit 1; fi;; esac; done\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "flags"


def test_cuda_goes_through_nvcc_for_both_generations(
    project: SmallProject, proving: Open, nvcc: Path
) -> None:
    (project.base / "engine" / "one.cu").write_text("int one;\n")
    (project.base / "engine" / "two.cu").write_text("broken\n\nint two;\n")
    project.edited("one", "engine/one.cu", "int one;\n", "int one; // broken\n")
    project.edited("two", "engine/two.cu", "int two;\n", "int three;\n")
    one, two = judged(proving)
    assert one.wrong == ("engine/one.cu does not compile: engine/one.cu(1): error: broken",)
    assert two.wrong == ()
    assert "compiles by itself on neither tree" in two.said[-1]
    assert "arch=compute_80,code=sm_80" in nvcc.read_text()
    assert "arch=compute_90,code=sm_90" in nvcc.read_text()


def test_without_nvcc_that_is_said(
    project: SmallProject, proving: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.base / "engine" / "one.cu").write_text("int one;\n")
    project.edited("one", "engine/one.cu", "int one;\n", "int two;\n")
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    (found,) = judged(proving)
    assert (found.sources, found.wrong) == (0, ())
    assert found.said[-1] == "engine/one.cu was not compiled: no nvcc on PATH"


def test_the_list_for_pyflakes_is_an_environment_of_its_own() -> None:
    from patchkit.prove import environment

    assert environment.digest_of_list(environment.LINT) != environment.digest_of_list()
