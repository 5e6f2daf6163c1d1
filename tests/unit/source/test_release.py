from __future__ import annotations

import json

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.series.pins import Upstream
from patchkit.source.release import release_of

from .conftest import Web, reply

NAMES = {
    "demo-1.0.tar.gz": "a",
    "demo-1.0-py3-none-any.whl": "b",
    "demo-1.0-cp38-abi3-manylinux_2_28_x86_64.whl": "c",
    "demo-1.0.post1.tar.gz": "d",
    "demo-0.9.tar.gz": "e",
    "demo-1.0.zip": "f",
    "demo-nonsense.whl": "1",
    "torch-2.13.0.tar.gz": "2",
}


@pytest.fixture
def index(pip: Web) -> Web:
    files = [
        {"filename": name, "url": name, "hashes": {"sha256": digit * 64}}
        for name, digit in NAMES.items()
    ]
    page = json.dumps({"files": files}).encode()
    pip.routes["/simple/demo/"] = lambda handler: reply(handler, page, "application/json")
    return pip


def test_a_releases_sdist_and_wheels_come_with_their_digests(index: Web) -> None:
    found = release_of(Upstream("demo", "plain"), "1.0").files
    assert found == {name: NAMES[name] * 64 for name in list(NAMES)[:3]}
    assert set(release_of(Upstream("demo", "plain"), "1.0-1").files) == {"demo-1.0.post1.tar.gz"}


def test_a_release_that_is_not_there_is_named_with_the_newest_ones(index: Web) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        release_of(Upstream("demo", "plain"), "2.0")
    assert caught.value.findings[0].found == "releases 1.0.post1, 1.0, 0.9"


@pytest.mark.parametrize(("said", "reason"), [("broken", "broken"), (True, "without a reason")])
def test_a_release_that_was_taken_back_is_said_to_be(pip: Web, said: object, reason: str) -> None:
    files = [
        {"filename": name, "url": name, "hashes": {"sha256": "a" * 64}, "yanked": mark}
        for name, mark in (("demo-1.0.tar.gz", said), ("demo-2.0.tar.gz", False))
    ]
    page = json.dumps({"files": files}).encode()
    pip.routes["/simple/demo/"] = lambda handler: reply(handler, page, "application/json")
    (note,) = release_of(Upstream("demo", "plain"), "1.0").notes
    assert (note.name, note.note, note.found) == ("yanked", True, "yanked: demo-1.0.tar.gz")
    assert reason in note.message
    assert release_of(Upstream("demo", "plain"), "2.0").notes == ()
