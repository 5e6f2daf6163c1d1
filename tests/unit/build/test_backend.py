"""Builds by a backend, run offline on a small project with the setuptools at hand."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from patchkit.build import empty
from patchkit.build.ask import Asked
from patchkit.build.built import Built
from patchkit.build.environment import Environment
from patchkit.build.run import build
from patchkit.derive.base import open_bases
from patchkit.derive.project import find
from patchkit.errors import Refused
from patchkit.upstreams.building import Recipe
from tests.conftest import SmallProject

SETUP = """import os
from setuptools import setup
import seldom
setup(
    name="engine",
    version=os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"],
    packages=["engine"],
    package_data={"engine": ["*.json"]},
)
"""
STUBS = {"seldom.py": "# stands in for a package that setup.py imports\n"}


def made(project: SmallProject, out: Path, how: str, python: str | None = None) -> Built:
    found = find(project.at)
    asked = Asked("v1.0", None, how, source=str(project.base), python=python)
    with open_bases(found, offline=True) as bases:
        return build(found, bases, asked, str(out))[0]


@pytest.fixture
def buildable(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """A project that setuptools builds, with one patch; the environment is the tests' own."""
    (project.base / "setup.py").write_text(SETUP)
    project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    done = project.run("lock", "--source", str(project.base))
    assert done.code == 0, done.text
    own = Environment(os.path.dirname(sys.executable), "0" * 64, "cp311")
    monkeypatch.setattr(empty, "ready", lambda cache, progress: own)
    monkeypatch.setattr(empty, "recipe", lambda kind: Recipe(stubs=STUBS))
    return project


def test_an_empty_wheel_is_the_patched_tree_and_the_same_twice(
    buildable: SmallProject, tmp_path: Path
) -> None:
    from installer.sources import WheelFile

    first = made(buildable, tmp_path / "a", "empty")
    old = os.umask(0o077)
    try:
        second = made(buildable, tmp_path / "b", "empty")
    finally:
        os.umask(old)
    assert first.sha256 == second.sha256
    assert first.version.startswith("1.0+empty.pk")
    assert first.changed == ("engine/plan.py",)
    with WheelFile.open(Path(first.path)) as source:
        source.validate_record()
    with zipfile.ZipFile(first.path) as archive:
        assert b"DEPTH = 3" in archive.read("engine/plan.py")
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.compress_type for i in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {i.external_attr >> 16 for i in archive.infolist()} == {0o100644}


def test_an_empty_wheel_of_a_stack_with_compiled_sources_is_refused(
    buildable: SmallProject, tmp_path: Path
) -> None:
    (buildable.base / "csrc").mkdir()
    (buildable.base / "csrc/sum.cu").write_text("int one;\n")
    shutil.rmtree(buildable.at / "work")
    buildable.edited("kernel", "csrc/sum.cu", "int one;\n", "int two;\n")
    assert buildable.run("lock", "--source", str(buildable.base)).code == 0
    with pytest.raises(Refused) as caught:
        made(buildable, tmp_path / "o", "empty")
    (found,) = caught.value.findings
    assert (found.name, found.details) == ("needs-build", ("csrc/sum.cu",))
    assert found.next.endswith("--how cuda")
    assert not (tmp_path / "o").exists()


def test_a_new_data_file_that_the_build_leaves_out_is_named(
    buildable: SmallProject, tmp_path: Path
) -> None:
    diff = "--- /dev/null\n+++ b/engine/table.txt\n@@ -0,0 +1 @@\n+one\n"
    header = (buildable.series / "deeper.patch").read_text().partition("---\n")[0]
    text = (
        header.replace("deeper", "table")
        + "---\n\n"
        + (
            "diff --git a/engine/table.txt b/engine/table.txt\nnew file mode 100644\n"
            f"index 0000000..5626abf\n{diff}"
        )
    )
    (buildable.series / "table.patch").write_text(text)
    (buildable.series / "series").open("a").write("table.patch\n")
    done = buildable.run("lock", "--source", str(buildable.base))
    assert done.code == 0, done.text
    with pytest.raises(Refused) as caught:
        made(buildable, tmp_path / "o", "empty")
    finding = caught.value.findings[0]
    assert finding.name == "not-built-from-this"
    assert finding.details == ("engine/table.txt: missing",)
    assert not (tmp_path / "o").exists()


def test_a_build_that_fails_is_told_with_its_last_words(
    buildable: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(empty, "recipe", lambda kind: Recipe())
    with pytest.raises(Refused) as caught:
        made(buildable, tmp_path / "o", "empty")
    assert "No module named 'seldom'" in "\n".join(caught.value.findings[0].details)
    assert not list((tmp_path / "the-cache" / "build").glob("empty-*")), "the copy is gone"
