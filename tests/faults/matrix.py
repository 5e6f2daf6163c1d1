"""One scene stopped at one point: what may stand there then, and what the next commands do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.place import Place, State
from tests.faults.scenes import NEAR
from tests.faults.scenes_of_releases import FAR
from tests.faults.stopping import GITS, KINDS, SYSTEM

SCENES = {**NEAR, **FAR}
REBASE = "mine/.patchkit/rebase.json"


@dataclass
class Places:
    """A folder for each setup: what several scenes begin with is made once."""

    home: Path
    made: dict[Callable[[Place], None], Place] = field(default_factory=dict)

    def of(self, setup: Callable[[Place], None]) -> Place:
        """The folder, as the setup left it."""
        if setup not in self.made:
            self.made[setup] = Place(self.home / setup.__name__)
            setup(self.made[setup])
            self.made[setup].keep()
        self.made[setup].restore()
        return self.made[setup]


class Case:
    """One scene, its old and new state, and how many writes and gits lie between them.

    points, shapes: how many stops there were so far, and how many different states they left; only
    of a state that is new the next commands are run.
    """

    def __init__(self, name: str, places: Places) -> None:
        self.name = name
        self.scene = SCENES[name]
        self.place = places.of(self.scene.setup)
        digest = self.place.at / "sha256"
        given = digest.read_text() if digest.exists() else ""
        self.command = tuple(word.replace("{sha256}", given) for word in self.scene.command)
        self.old = self.place.state()
        done = self.place.run(*self.command)
        assert done.code == self.scene.code, (self.command, done.said)
        self.new = self.place.state()
        assert self.new != self.old or self.command[0] in ("cache", "check")
        self.writes, self.gits = done.writes, done.gits
        assert self.writes
        self.points = 0
        self.shapes: set[str] = set()

    def every(self, kind: str) -> Iterator[int]:
        """Each point at which this kind can stop the command."""
        yield from range(self.gits if kind in GITS else self.writes)

    def stop(self, number: int, kind: str) -> None:
        """Stop the command at a point, look, ask, and run it again."""
        place, scene = self.place, self.scene
        what = f"{' '.join(self.command)} stopped at {number} of {self.writes} by {kind}"
        place.restore()
        done = place.run(*self.command, number=number, kind=kind)
        self.points += 1
        self._ended(what, kind, done.code, done.said)
        shape = place.shape()
        if shape in self.shapes:
            return
        self.shapes.add(shape)
        if scene.after and self._between():
            asked = place.run(*scene.after)
            assert asked.code in (0, 1, 3), f"{what}, then {scene.after}\n{asked.said}"
            _quiet(what, asked.said)
            self._whole(what, asked.said)
        begun = scene.resumed and (place.at / REBASE).exists()
        again = place.run(*(scene.resumed if begun else self.command))
        _quiet(what, again.said)
        if again.code == 2 and scene.anew:
            assert " ".join(scene.anew[:1]) in again.said, again.said
            again = place.run(*scene.anew)
            assert again.code == 0, f"{what}, then {scene.anew}\n{again.said}"
            odd = [p for p in different(place.state(), self.new) if "/build/" not in f"/{p}"]
            assert not odd, f"{what}, then {scene.anew}\n{again.said}"
            return
        assert again.code in scene.twice, f"{what}; again:\n{again.said}"
        left = different(place.state(), self.new)
        assert left == {}, f"{what}; again: {left}\n{again.said}"

    def _between(self) -> bool:
        """Whether the next command has something to say: all that was old or new in full, without
        a journal, is what it sees every day."""
        journal = any(self.place.at.rglob("journal.json"))
        return journal or self.place.state() not in (self.old, self.new)

    def _ended(self, what: str, kind: str, code: int, said: str) -> None:
        """How the stopped command itself ended."""
        _quiet(what, said)
        if kind in SYSTEM:
            # A call whose failure does not matter (a chmod, a sync, litter) may be passed over.
            assert code in (0, 1, 3), f"{what}: exit {code}\n{said}"
            if code == self.scene.code:
                assert different(self.place.state(), self.new) == {}, f"{what}\n{said}"
            else:
                assert "error: " in said, what
        elif kind == "interrupt" and code not in (self.scene.code, 3):
            assert code == 130, f"{what}: exit {code}\n{said}"
            assert "interrupted" in said

    def _whole(self, what: str, said: str) -> None:
        """All is old or all is new; a tree being laid out (below build/) may be in between."""
        found = self.place.state()
        known = [different(found, wanted) for wanted in (self.old, self.new)]
        least = min(known, key=len)
        if "error: journal: " in said or "base onto next" in said:
            return  # the next command says that it is in between, and which command ends it
        # A journal of which nothing was carried out; a settled conflict, kept for the next time;
        # a file that has not got its name, which goes with the next one.
        begun = ("/build/", "/patchkit-journal/", "/series/.resolutions/", ".pk-tmp")
        odd = [path for path in least if not any(part in f"/{path}" for part in begun)]
        assert not odd, f"{what}: {least}\n{said}"


def different(found: State, wanted: State) -> State:
    """What is not the same, path by path."""
    both = sorted({*found, *wanted})
    return {p: f"{wanted.get(p)} -> {found.get(p)}" for p in both if found.get(p) != wanted.get(p)}


def _quiet(what: str, said: str) -> None:
    assert "Traceback" not in said, f"{what}\n{said}"
    assert "fault of patchkit itself" not in said, f"{what}\n{said}"


__all__ = ["KINDS", "SCENES", "Case", "Places", "different"]
