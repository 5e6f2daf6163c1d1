"""Overlay wheels of a small project: right, the same every time, refused where they must be."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Ran, SmallProject
from tests.unit.build import wheels


def build(project: SmallProject, base: tuple[Path, str], out: Path, *more: str) -> Ran:
    line = ("--base-wheel", str(base[0]), "--sha256", base[1], "-o", str(out), "--json")
    return project.run("build", "--pin", "v1.0", "--source", str(project.base), *line, *more)


def built(project: SmallProject, base: tuple[Path, str], out: Path, *more: str) -> dict[str, str]:
    done = build(project, base, out, *more)
    assert done.code == 0, done.text
    found: dict[str, str] = json.loads(done.out)
    return found


def finding(done: Ran, out: Path) -> dict[str, object]:
    """The one finding of a refusal, nothing having been written."""
    assert done.code == 1, done.text
    assert not out.exists()
    found: list[dict[str, object]] = [f for f in json.loads(done.out)["findings"] if not f["note"]]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def official(locked: SmallProject, tmp_path: Path) -> tuple[Path, str]:
    return wheels.wheel(tmp_path / "official", locked.base)


def test_the_wheel_is_the_official_one_with_the_changed_files(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    from installer.sources import WheelFile

    found = built(locked, official, tmp_path / "out")
    version = found["version"]
    assert version.startswith("1.0+pk")
    assert len(version) == len("1.0+pk") + 12
    assert found["file"] == f"engine-{version}-cp38-abi3-manylinux_2_28_x86_64.whl"
    assert hashlib.sha256(Path(found["path"]).read_bytes()).hexdigest() == found["sha256"]
    with WheelFile.open(Path(found["path"])) as source:
        source.validate_record()
    with zipfile.ZipFile(found["path"]) as new, zipfile.ZipFile(official[0]) as old:
        info = f"engine-{version}.dist-info"
        assert "DEPTH = 3" in new.read("engine/plan.py").decode()
        assert "return 90" in new.read("engine/lanes.py").decode()
        assert "# wide" not in new.read("engine/lanes.py").decode()
        for name in ("engine/__init__.py", "engine/_C.abi3.so", "engine/configs/a,b.json"):
            assert new.read(name) == old.read(name)
            assert new.getinfo(name).compress_size == old.getinfo(name).compress_size
        text = new.read(f"{info}/METADATA")
        assert f"\nVersion: {version}\n".encode() in text
        assert text.endswith(b"\nVersion: of the text, which stays\n")
        assert b"Tag: cp38-abi3-manylinux_2_28_x86_64\n" in new.read(f"{info}/WHEEL")
        module: dict[str, object] = {}
        exec(new.read("engine/_version.py"), module)
        assert module["__version__"] == version
        assert module["version_tuple"] == (1, 0, version.partition("+")[2])
        assert not any(n.startswith("engine-1.0.dist-info") for n in new.namelist())
        state = json.loads(new.read(f"{info}/patchkit.json"))
        assert (state["made_by"], state["stack"], state["patches"]) == ("build", "default", [])


def test_the_same_bytes_whatever_the_folder_the_umask_and_the_surroundings(
    locked: SmallProject,
    official: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = built(locked, official, tmp_path / "a")
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    old = os.umask(0o077)
    try:
        elsewhere = tmp_path / "elsewhere" / official[0].name
        elsewhere.parent.mkdir()
        elsewhere.write_bytes(official[0].read_bytes())
        second = built(locked, (elsewhere, official[1]), tmp_path / "a" / "longer" / "way")
    finally:
        os.umask(old)
    for key in ("path", "provenance", "sbom"):
        assert Path(first[key]).read_bytes() == Path(second[key]).read_bytes(), key


def test_another_stack_has_another_label_and_a_variant_stays_in_it(
    locked: SmallProject, tmp_path: Path
) -> None:
    from packaging.version import Version

    base = wheels.wheel(tmp_path / "cu", locked.base, "1.0+cu129")
    plain = built(locked, base, tmp_path / "a")["version"]
    wide = built(locked, base, tmp_path / "b", "--stack", "wide")["version"]
    assert plain.startswith("1.0+cu129.pk")
    assert wide.startswith("1.0+cu129.pk")
    assert plain != wide
    assert str(Version(plain)) == plain


def test_it_installs_runs_and_is_known_as_built(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    found = built(locked, official, tmp_path / "out")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(site), found["path"]], check=True, capture_output=True)
    code = (
        "import engine.plan, importlib.metadata as m; print(engine.plan.DEPTH, m.version('engine'))"
    )
    env = {**os.environ, "PYTHONPATH": str(site)}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert said.stdout.split() == ["3", found["version"]]
    checked = locked.run("check", "--pin", "v1.0", "--installed", "--site", str(site))
    assert checked.code == 0, checked.text
    assert "patched" in checked.out


def test_a_native_stack_is_refused_with_its_files_and_the_way_out(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    locked.edited("compiled", "setup.py", "setup()\n", "setup(name='x')\n", "wide")
    assert locked.run("lock", "--source", str(locked.base)).code == 0
    found = finding(build(locked, official, tmp_path / "o", "--stack", "wide"), tmp_path / "o")
    assert found["name"] == "needs-build"
    assert found["details"] == ["setup.py"]
    assert "--how cuda" in str(found["next"])


def test_the_base_match_is_proven_file_by_file(locked: SmallProject, tmp_path: Path) -> None:
    files = wheels.files_of(locked.base)
    files["engine/__init__.py"] += b"# built from something else\n"
    del files["engine/plan.py"]
    base = wheels.write(tmp_path / "engine-1.0-py3-none-any.whl", wheels.sealed(files))
    found = finding(build(locked, base, tmp_path / "o"), tmp_path / "o")
    assert found["name"] == "pin-mismatch"
    assert found["details"] == ["engine/__init__.py", "engine/plan.py"]


@pytest.mark.parametrize(
    ("git", "named"),
    [
        ("https://me:s3cret@git.example/engine.git", "https://git.example/engine.git"),
        ("../on-this-machine", "engine"),
    ],
)
def test_the_papers_name_the_repository_without_password_or_folder_of_this_machine(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path, git: str, named: str
) -> None:
    pins = locked.at / "pins.toml"
    pins.write_text(pins.read_text().replace('kind = "plain"', f'kind = "plain"\ngit = "{git}"'))
    found = built(locked, official, tmp_path / "out")
    papers = [Path(found[key]).read_text() for key in ("provenance", "sbom")]
    rows = json.loads(papers[0])["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [r["name"] for r in rows if "gitCommit" in r["digest"]] == [named]
    assert "s3cret" not in "".join(papers)
    assert str(tmp_path) not in "".join(papers)


def test_provenance_and_sbom_name_every_input_and_no_time_of_day(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    found = built(locked, official, tmp_path / "out")
    said = json.loads(Path(found["provenance"]).read_bytes())
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert said["subject"] == [{"name": found["file"], "digest": {"sha256": found["sha256"]}}]
    rows = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"sha256": official[1]} in [row["digest"] for row in rows]
    patch = hashlib.sha256((locked.series / "deeper.patch").read_bytes()).hexdigest()
    assert {"sha256": patch} in [row["digest"] for row in rows]
    bill = json.loads(Path(found["sbom"]).read_bytes())
    assert bill["spdxVersion"] == "SPDX-2.3"
    assert bill["creationInfo"]["created"] == "2026-09-22T03:01:48Z"
    names = {(p["name"], p.get("versionInfo")) for p in bill["packages"]}
    assert ("torch", "2.13.0") in names
    assert ("fast", None) in names
    idents = {"SPDXRef-DOCUMENT", *(p["SPDXID"] for p in bill["packages"])}
    idents |= {f["SPDXID"] for f in bill["files"]}
    for row in bill["relationships"]:
        assert {row["spdxElementId"], row["relatedSpdxElement"]} <= idents


def test_verify_builds_again_and_names_the_members_that_differ(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    found = built(locked, official, tmp_path / "out")
    given = ("--base-wheel", str(official[0]), "--sha256", official[1])
    line = ("build", "--source", str(locked.base), *given, "--json")
    same = locked.run(*line, "--verify", found["path"])
    assert same.code == 0, same.text
    assert json.loads(same.out)["same"] is True
    with zipfile.ZipFile(found["path"]) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["engine/plan.py"] += b"# slipped in\n"
    edited = wheels.write(tmp_path / "edited" / found["file"], files)[0]
    other = locked.run(*line, "--verify", str(edited))
    said = json.loads(other.out)["findings"][-1]
    assert other.code == 1
    assert said["name"] == "not-built-from-this"
    assert [line.partition(":")[0] for line in said["details"]] == ["engine/plan.py"]


def test_a_wheel_on_another_base_is_not_called_wrong_where_the_base_is_not_given(
    locked: SmallProject, tmp_path: Path
) -> None:
    base = wheels.wheel(tmp_path / "cuda", locked.base, "1.0+cu129")
    found = built(locked, base, tmp_path / "out")
    line = ("build", "--source", str(locked.base), "--verify", found["path"], "--json")
    done = locked.run(*line)
    said = json.loads(done.out)["findings"][-1]
    assert done.code == 2, done.text
    assert said["next"] == (
        f"patchkit build --verify {found['path']} --base-wheel {base[0].name} --sha256 {base[1]}"
    )
    Path(found["provenance"]).write_text("[]")
    bare = locked.run(*line)
    said = json.loads(bare.out)["findings"][-1]
    assert bare.code == 2, bare.text
    assert said["found"] == "the label of a +cu129 wheel"
    assert locked.run(*line, "--base-wheel", str(base[0]), "--sha256", base[1]).code == 0


@pytest.mark.parametrize(
    "name",
    ["motor-1.0-cp38-abi3-manylinux_2_28_x86_64.whl", "engine-1.0+cu129-py3-none-any.whl"],
)
def test_a_wheel_whose_name_says_something_else_is_refused(
    locked: SmallProject, tmp_path: Path, name: str
) -> None:
    base = wheels.write(tmp_path / name, wheels.sealed(wheels.files_of(locked.base)))
    found = finding(build(locked, base, tmp_path / "o"), tmp_path / "o")
    assert found["name"] == "pin-mismatch"
    assert found["expected"] == "engine 1.0, in the name and inside"


@pytest.mark.parametrize("pinned", [True, False])
def test_the_command_in_the_papers_names_the_wheel_that_was_taken(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path, pinned: bool
) -> None:
    pins = locked.at / "pins.toml"
    stated = official[1] if pinned else "a" * 64
    table = f'[pins."v1.0".files]\n"{official[0].name}" = "sha256:{stated}"\n'
    pins.write_text(f"{pins.read_text()}\n{table}")
    assert locked.run("lock", "--source", str(locked.base)).code == 0
    found = built(locked, official, tmp_path / "out")
    said = json.loads(Path(found["provenance"]).read_bytes())
    command = said["predicate"]["buildDefinition"]["externalParameters"]["command"]
    digest = [] if pinned else ["--sha256", official[1]]
    assert command[command.index("--base-wheel") :] == ["--base-wheel", official[0].name, *digest]
    # Without the base's name --verify takes the pin's own, where that is what was taken.
    line = ("build", "--source", str(locked.base), "--offline", "--json")
    done = locked.run(*line, "--verify", found["path"])
    name = json.loads(done.out)["findings"][-1]["name"]
    assert (done.code, name) == ((3, "network") if pinned else (2, "usage")), done.text


def test_a_new_file_below_a_file_that_only_the_wheel_has(
    locked: SmallProject, official: tuple[Path, str], tmp_path: Path
) -> None:
    diff = (
        "Subject: Below a library\n\nWhy.\n---\n"
        "diff --git a/engine/_C.abi3.so/x.py b/engine/_C.abi3.so/x.py\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/engine/_C.abi3.so/x.py\n@@ -0,0 +1 @@\n+X = 1\n"
    )
    (locked.series / "below.patch").write_text(diff)
    with (locked.series / "series").open("a") as file:
        file.write("below.patch\n")
    assert locked.run("lock", "--source", str(locked.base)).code == 0
    found = finding(build(locked, official, tmp_path / "o"), tmp_path / "o")
    assert (found["name"], found["file"]) == (
        "target-exists",
        "engine/_C.abi3.so/x.py",
    )
