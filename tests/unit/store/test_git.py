from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.store import git


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Surroundings in which every GIT_ variable and ~/.gitconfig want something else."""
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n[user]\n\tname = Hostile\n")
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_NAMESPACE",
        "GIT_CONFIG",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CEILING_DIRECTORIES",
        "GIT_EXTERNAL_DIFF",
        "GIT_PAGER",
    ]:
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.chdir(tmp_path)  # the clone that the tests stand in may state a name, too
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Counted")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.email=x@y'")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    return tmp_path


def test_no_git_variable_of_the_user_passes(hostile: Path) -> None:
    env = git.environment(ceiling="/above")
    assert {name for name in env if name.startswith("GIT_")} == {
        "GIT_ADVICE",
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_ATTR_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_NO_LAZY_FETCH",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
    }
    assert env["GIT_CEILING_DIRECTORIES"] == "/above"
    assert env["LC_ALL"] == "C"
    assert "GIT_DIR" not in git.environment(network=True)


def test_no_configuration_of_the_user_is_read(hostile: Path) -> None:
    assert git.attempt(["config", "user.name"]).stdout == b""
    assert git.run(["config", "core.autocrlf"]) == b"false\n"
    assert git.attempt(["config", "user.email"]).stdout == b""


def test_only_for_the_network_the_users_own_configuration_counts(hostile: Path) -> None:
    assert git.run(["config", "user.name"], network=True) == b"Hostile\n"
    assert git.run(["config", "core.autocrlf"], network=True) == b"false\n"


def test_a_repository_above_is_not_found(tmp_path: Path) -> None:
    git.run(["init", "--quiet", str(tmp_path)])
    inner = tmp_path / "sub" / "folder"
    inner.mkdir(parents=True)
    assert git.attempt(["rev-parse", "--git-dir"], cwd=str(inner)).returncode == 128


def test_gits_own_words_are_given_without_credentials() -> None:
    with pytest.raises(EnvironmentFault) as caught:
        git.run(["ls-remote", "nosuch://user:secret@host.example/x"])
    (finding,) = caught.value.findings
    assert finding.name == "git"
    assert "secret" not in str(finding.to_json())


def test_of_gits_words_the_ones_that_say_what_is_wrong_come_first() -> None:
    said = (
        b"ssh: connect to host h port 22: Connection refused\n"
        b"fatal: Could not read from remote repository.\n\n"
        b"Please make sure you have the correct access rights\nand the repository exists.\n"
    )
    (finding,) = git.fault(["fetch"], 128, said).findings
    assert finding.message.endswith("ssh: connect to host h port 22: Connection refused")
    said = b"fatal: write error: No space left on device\nfatal: fetch-pack: invalid output\n"
    (finding,) = git.fault(["fetch"], 128, said).findings
    assert finding.details == ("fatal: write error: No space left on device",)


def test_a_git_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    git.executable.cache_clear()
    try:
        with pytest.raises(EnvironmentFault) as caught:
            git.executable()
    finally:
        git.executable.cache_clear()
    assert caught.value.findings[0].next.startswith("install git")


def test_an_old_git_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert git.version() >= git.OLDEST
    monkeypatch.setattr(git, "run", lambda args: b"git version 2.17.1 (Apple Git-1)\n")
    with pytest.raises(EnvironmentFault) as caught:
        git.version()
    assert caught.value.findings[0].found == "2.17.1"


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 30\n")
    fake.chmod(0o755)
    git.executable.cache_clear()
    old = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{old}"
    try:
        with pytest.raises(EnvironmentFault, match="did not end"):
            git.run(["status"], timeout=0.2)
    finally:
        os.environ["PATH"] = old
        git.executable.cache_clear()
