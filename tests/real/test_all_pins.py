"""Every pin of pins.toml, for real: fetched, its digests and its tree compared, its gaps named."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import tomllib

from patchkit.engine.model import Overlay
from patchkit.series.pins import load_pins
from patchkit.source import open_source
from patchkit.source.pinned import fetch_pinned, sdist_of
from patchkit.store import Store
from patchkit.upstreams import known

ROOT = Path(__file__).resolve().parents[2]
TOML = tomllib.loads((ROOT / "pins.toml").read_text())
PINS = TOML["pins"]
MADE = re.compile(r"PKG-INFO|setup\.cfg|vllm/_version\.py|vllm\.egg-info/.*")
"""What the build of the sdist wrote into it: by name, in the top folder."""
GENERATORS = ("csrc/quantization/marlin/generate_kernels.py",) * 2
"""What CMake runs to write the marlin kernels: for linear layers, for MoE. 0.32 made them one."""
OLD_GENERATORS = (
    "csrc/libtorch_stable/quantization/marlin/generate_kernels.py",
    "csrc/libtorch_stable/moe/marlin_moe_wna16/generate_kernels.py",
)

pytestmark = pytest.mark.real


def patchkit(*args: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "-C", str(ROOT), *args, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sdist(pin: str) -> Path:
    """The archive in the user's cache; downloaded where it is not."""
    pins = load_pins((ROOT / "pins.toml").read_bytes())
    known_as = pins.pin(pin)
    return Path(fetch_pinned(pins.upstream_of(known_as), known_as, sdist_of(known_as)[0]))


def test_these_are_the_pins() -> None:
    assert sorted(PINS) == ["v0.29.0", "v0.30.0", "v0.31.0", "v0.32.0", "v0.33.0"]


@pytest.mark.parametrize("pin", sorted(PINS))
def test_the_archive_is_the_pinned_one_and_its_tree_is_the_one_that_git_makes(
    pin: str, tmp_path: Path
) -> None:
    (row,) = patchkit("fetch", "--pin", pin)["pins"]
    assert (row["source"], f"v{row['version']}") == ("sdist", pin)
    archive = sdist(pin)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert PINS[pin]["files"][archive.name] == f"sha256:{digest}"
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (top,) = tmp_path.iterdir()
    for path in [p for p in top.rglob("*") if p.is_file()]:
        if MADE.fullmatch(path.relative_to(top).as_posix()):
            path.unlink()
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path)}
    line = ["git", "-C", str(top), "-c", "core.compression=0"]
    for args in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run([*line, *args], check=True, env=env)
    made = subprocess.run([*line, "write-tree"], check=True, env=env, capture_output=True)
    assert made.stdout.decode().strip() == row["tree"]


@pytest.mark.parametrize("pin", sorted(PINS))
def test_a_check_of_the_pin_says_no_more_than_that_it_is_incomplete(pin: str) -> None:
    report = patchkit("check", "--pin", pin)
    # What speaks of patches and of their recorded runs is not the pin's.
    others = ("offset", "proof-stale")
    notes = [(f["name"], f["note"]) for f in report["findings"] if f["name"] not in others]
    whole = len(PINS[pin].get("commit", "")) == 40
    assert notes == ([] if whole else [("pin-incomplete", True)])


@pytest.mark.parametrize("pin", sorted(PINS))
def test_the_sdist_names_the_pinned_commit(pin: str) -> None:
    with tarfile.open(sdist(pin)) as tar:
        name = f"vllm-{pin.removeprefix('v')}/vllm/_version.py"
        stream = tar.extractfile(name)
        assert stream is not None
        text = stream.read().decode()
    said = re.search(r"commit_id = 'g([0-9a-f]{9,40})'", text)
    assert said is not None
    ours = PINS[pin].get("commit") or PINS[pin]["commit-prefix"]
    assert ours.startswith(said[1]) or said[1].startswith(ours)


@pytest.mark.parametrize("pin", sorted(PINS))
def test_no_source_that_cmake_names_is_missing_and_one_that_is_taken_away_is_named(
    pin: str,
) -> None:
    pins = load_pins((ROOT / "pins.toml").read_bytes())
    upstream = pins.upstreams["vllm"]
    with tarfile.open(sdist(pin)) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    with Store.open() as store:
        base = open_source("sdist", upstream).tree(store, pins.pin(pin))
        tree = base.tree(store)
        cmake = tree.get("CMakeLists.txt")
        assert cmake is not None
        scripts = re.findall(
            r"^\s*set\((?:MOE_)?MARLIN_GEN_SCRIPT\s+\$\{CMAKE_CURRENT_SOURCE_DIR\}/(\S+)\)",
            cmake.data.decode(),
            re.MULTILINE,
        )
        assert tuple(scripts) == (GENERATORS if pin >= "v0.32" else OLD_GENERATORS)
        assert set(scripts) <= names
        assert base.gaps == ()
        lost = scripts[-1]
        gaps = known(upstream).gaps(Overlay(tree, {lost: None}))
    assert [(g.name, g.where.file, g.note) for g in gaps] == [("sdist-gap", lost, True)]
    assert gaps[0].next.startswith("--source git")


def test_the_index_has_the_pinned_digests_of_every_file() -> None:
    asked = urllib.request.Request(
        "https://pypi.org/simple/vllm/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        page = json.load(answer)
    said = {f["filename"]: f"sha256:{f['hashes']['sha256']}" for f in page["files"]}
    pinned = {name: digest for pin in PINS.values() for name, digest in pin["files"].items()}
    assert len(pinned) == 3 * len(PINS)
    assert {name: said[name] for name in pinned} == pinned
