"""What a killed process left goes with the next one; what another container is at stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patchkit.files import abandoned
from patchkit.files.atomic import write_file

END = ".pk-tmp"


def dead() -> int:
    """The number of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def home() -> str:
    name = abandoned.unfinished("x", END)
    return name.removeprefix(f"x.{os.getpid()}-").removesuffix(END)


def left(at: Path, who: str, age: float = 0) -> Path:
    """A file that process `who` has not finished, last written `age` seconds ago."""
    path = at.with_name(f"{at.name}.{who}{END}")
    path.write_text("half")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_dead_process_of_this_home_goes_at_once_and_one_of_another_after_a_day(
    tmp_path: Path,
) -> None:
    at = tmp_path / "it"
    number, day = dead(), 86_400
    gone = [left(at, f"{number}-{home()}"), left(at, f"{number}-0123abcd", day + 60)]
    gone.append(left(at, str(number), day + 60))  # as earlier releases named it
    stays = [left(at, f"{number}-0123abce"), left(at, str(number - 1), 60)]
    stays.append(left(at, f"{os.getppid()}-{home()}", day + 60))
    stays += [left(at, f"{number}-{word}", day + 60) for word in ("0123ABCD", "012", "a-b")]
    write_file(at, b"whole")
    assert at.read_bytes() == b"whole"
    assert [path for path in gone if path.exists()] == []
    assert [path for path in stays if not path.exists()] == []


def test_the_same_number_in_two_containers_is_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share a folder: one would write into the other's file."""
    one = abandoned.unfinished("it", END)
    assert one == abandoned.unfinished("it", END)
    real = os.readlink

    def another(path: str) -> str:
        return "pid:[1]" if path == "/proc/self/ns/pid" else real(path)

    monkeypatch.setattr(os, "readlink", another)
    abandoned._home.cache_clear()
    other = abandoned.unfinished("it", END)
    monkeypatch.undo()
    abandoned._home.cache_clear()
    assert one.split("-")[0] == other.split("-")[0]
    assert one != other


def test_a_system_that_tells_nothing_of_itself_has_a_home_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(*args: object, **more: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "readlink", nothing)
    monkeypatch.setattr("builtins.open", nothing)
    abandoned._home.cache_clear()
    name = abandoned.unfinished("it", END)
    monkeypatch.undo()
    abandoned._home.cache_clear()
    assert abandoned._whose(name.removeprefix("it.").removesuffix(END)) is not None
