"""Rust crates: fetched by their lock before the network is closed, or the build does not start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.build import crates
from patchkit.errors import EnvironmentFault
from patchkit.source.base import silent

CARGO = """#!/bin/sh
echo "$@" > {at}/args
env > {at}/env
if test -e {at}/broken; then
  echo 'error: failed to download `serde v1.0.0`' >&2
  echo 'Caused by: could not resolve host' >&2
  exit 101
fi
mkdir -p "$CARGO_HOME/registry"
"""


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "cargo"
    tool.write_text(CARGO.format(at=tmp_path))
    tool.chmod(0o755)
    (tmp_path / "tree" / "rust").mkdir(parents=True)
    (tmp_path / "tree" / "rust" / "Cargo.toml").write_text("[workspace]\n")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("CARGO_REGISTRIES_MINE_TOKEN", "secret")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "CARGO_HOME": str(tmp_path / "cargo"), "RUSTUP_TOOLCHAIN": "1.95.0-x"}


def fetch(at: Path, variables: dict[str, str], manifest: str, offline: bool = False) -> None:
    crates.fetch(str(at / "tree"), manifest, variables, offline, silent)


def test_they_come_by_their_lock_into_a_home_of_the_builds_own(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    fetch(tmp_path, variables, "rust/Cargo.toml")
    assert (tmp_path / "cargo" / "registry").is_dir()
    assert (tmp_path / "args").read_text() == "fetch --locked --manifest-path rust/Cargo.toml\n"
    said = (tmp_path / "env").read_text()
    assert "HTTPS_PROXY=http://proxy.invalid" in said, "a proxy leads there"
    assert "RUSTUP_TOOLCHAIN=1.95.0-x" in said
    assert "secret" not in said
    fetch(tmp_path, variables, "rust/Cargo.toml", offline=True)
    assert (tmp_path / "args").read_text().endswith(" --offline\n")


def test_one_that_cannot_be_had_is_named(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "broken").write_text("")
    with pytest.raises(EnvironmentFault) as caught:
        fetch(tmp_path, variables, "rust/Cargo.toml")
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert "serde v1.0.0" in finding.found
    assert finding.details == ("Caused by: could not resolve host",)
    assert finding.where.file == "rust/Cargo.toml"


def test_a_tree_without_crates_asks_nobody(tmp_path: Path, variables: dict[str, str]) -> None:
    fetch(tmp_path, variables, "")
    fetch(tmp_path, variables, "absent/Cargo.toml")
    assert not (tmp_path / "args").exists()
