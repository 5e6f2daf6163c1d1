"""A stopped command leaves the old state or the new one, the next one says which, and the same
command once more comes to its end.

`python -m tests.faults --keep` stops every command at every point in every way, and counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.counts import KEPT, Counts
from tests.faults.matrix import KINDS, SCENES, Case, Places
from tests.faults.place import warm_up

ROOT = Path(__file__).parents[2]
SAMPLE = {"kill": (0.3, 0.75), "full": (0.5,), "git-dies": (0.9,)}
"""Where the fast suite stops a command, as parts of its way; the slow one stops it everywhere."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    warm_up()
    return Places(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module", params=sorted(SCENES, key=lambda n: SCENES[n].setup.__name__))
def case(request: pytest.FixtureRequest, places: Places) -> Case:
    return Case(request.param, places)


def test_a_stopped_command_leaves_old_or_new_and_can_be_run_again(case: Case) -> None:
    for kind, parts in SAMPLE.items():
        points = list(case.every(kind))
        for part in parts if points else ():
            case.stop(points[int(len(points) * part)], kind)


def test_what_the_page_says_was_run_is_what_was_counted() -> None:
    counts = Counts.read(KEPT)
    assert set(counts.scenes) == set(SCENES)
    assert all(set(scene["ways"]) == set(KINDS) for scene in counts.scenes.values())
    page = " ".join((ROOT / "SECURITY.md").read_text().split())
    assert f": {counts.sentence()}." in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_at_every_point(case: Case, kind: str) -> None:
    for number in case.every(kind):
        case.stop(number, kind)
