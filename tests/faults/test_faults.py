"""A stopped command leaves the old state or the new one, the next one says which, and the same
command once more comes to its end."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.faults.place import Place, State, Stop
from tests.faults.scenes import SCENES, Scene
from tests.unit.target.killing import refusing

SAMPLE = 2
"""Writes of a command that the fast suite stops at; the slow one takes them all, in every way."""


def killing(name: str, args: tuple[Any, ...]) -> None:
    """As a power cut: what was being written is half there."""
    if name == "fsync" and args:
        try:
            os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
        except OSError:
            pass  # a folder
    os.kill(os.getpid(), signal.SIGKILL)


def told(number: int) -> Stop:
    """The signal `number` comes at that moment; the call is made after it where one returns."""

    def stop(name: str, args: tuple[Any, ...]) -> None:
        os.kill(os.getpid(), number)

    return stop


STOPS: dict[str, Stop] = {
    "kill": killing,
    "term": told(signal.SIGTERM),
    "interrupt": told(signal.SIGINT),
    "full": refusing(errno.ENOSPC),
    "broken": refusing(errno.EIO),
    "denied": refusing(errno.EACCES),
}
SYSTEM = ("full", "broken", "denied")


class Case:
    """One scene, its old and new state, and how many writes lie between them."""

    def __init__(self, scene: Scene, place: Place) -> None:
        self.scene = scene
        self.place = place
        scene.setup(place)
        place.keep()
        place.restore()
        self.old = place.state()
        done = place.must(*scene.command)
        self.new = place.state()
        assert self.new != self.old or scene.command[0] == "cache"
        self.writes = done.writes
        assert self.writes

    def stop(self, number: int, kind: str) -> None:
        """Stop the command at a write, look, ask, and run it again."""
        place, scene = self.place, self.scene
        what = f"{' '.join(scene.command)} stopped at {number} of {self.writes} by {kind}"
        place.restore()
        done = place.run(*scene.command, number=number, stop=STOPS[kind])
        _quiet(what, done.said)
        if kind in SYSTEM:
            # A call whose failure does not matter (a chmod, a sync, litter) may be passed over.
            assert done.code in (0, 1, 3), f"{what}: exit {done.code}\n{done.said}"
            if done.code == 0:
                assert place.state() == self.new, f"{what}\n{done.said}"
            else:
                assert "error: " in done.said, what
        elif kind == "interrupt" and done.code not in (0, 3):
            assert done.code == 130, f"{what}: exit {done.code}\n{done.said}"
            assert "interrupted" in done.said
        if scene.after:
            asked = place.run(*scene.after)
            assert asked.code in (0, 1, 3), f"{what}, then {scene.after}\n{asked.said}"
            _quiet(what, asked.said)
            self.whole(what, asked.said)
        again = place.run(*scene.command)
        _quiet(what, again.said)
        if again.code == 2 and scene.anew:
            assert " ".join(scene.anew[:1]) in again.said, again.said
            again = place.run(*scene.anew)
            assert again.code == 0, f"{what}, then {scene.anew}\n{again.said}"
            odd = [p for p in different(place.state(), self.new) if "/build/" not in f"/{p}"]
            assert not odd, f"{what}, then {scene.anew}\n{again.said}"
            return
        assert again.code in scene.twice, f"{what}; again:\n{again.said}"
        assert different(place.state(), self.new) == {}, f"{what}; again:\n{again.said}"

    def whole(self, what: str, said: str) -> None:
        """All is old or all is new; a tree being laid out (below build/) may be in between."""
        found = self.place.state()
        known = [different(found, wanted) for wanted in (self.old, self.new)]
        least = min(known, key=len)
        if "error: journal: " in said:
            return  # the next command says that it is in between, and which command undoes it
        begun = ("/build/", "/patchkit-journal/")  # a journal of which nothing was carried out
        odd = [path for path in least if not any(part in f"/{path}" for part in begun)]
        assert not odd, f"{what}: {least}\n{said}"


def different(found: State, wanted: State) -> State:
    """What is not the same, path by path."""
    both = sorted({*found, *wanted})
    return {p: f"{wanted.get(p)} -> {found.get(p)}" for p in both if found.get(p) != wanted.get(p)}


def _quiet(what: str, said: str) -> None:
    assert "Traceback" not in said, f"{what}\n{said}"
    assert "fault of patchkit itself" not in said, f"{what}\n{said}"


@pytest.fixture(scope="module", params=sorted(SCENES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    home: Path = tmp_path_factory.mktemp("faults")
    return Case(SCENES[request.param], Place(home))


@pytest.mark.parametrize("kind", ["full", "kill"])
def test_a_stopped_command_leaves_old_or_new_and_can_be_run_again(case: Case, kind: str) -> None:
    for part in range(SAMPLE):
        case.stop(case.writes * (2 * part + 1) // (2 * SAMPLE), kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(STOPS))
def test_at_every_write(case: Case, kind: str) -> None:
    for number in range(case.writes):
        case.stop(number, kind)
