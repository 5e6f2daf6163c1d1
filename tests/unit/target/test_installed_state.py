"""patchkit.json: what is written is read back, and nothing that somebody else wrote is believed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.engine.model import File
from patchkit.errors import Refused
from patchkit.target.installed import apply_pins
from patchkit.target.installed_state import (
    BUILD,
    SERIES,
    State,
    dump_state,
    excerpt,
    load_state,
    pack,
    unpack,
)
from tests.unit.target.installing import Site, two_patches


@pytest.fixture
def state(tmp_path: Path) -> State:
    site = Site(tmp_path / "s")
    site.install()
    apply_pins(site.sites, [two_patches().packet()])
    return load_state((site.at / "engine-1.0.dist-info/patchkit.json").read_bytes(), "x")


def test_a_state_comes_back(state: State) -> None:
    again = load_state(dump_state(state), "x")
    assert again == state
    assert dump_state(again) == dump_state(state)


def test_a_built_wheel_needs_no_more_than_its_lock() -> None:
    packet = two_patches().packet()
    lock = excerpt(packet.lock, packet.chain, packet.paths())
    state = State(BUILD, SERIES, "default", lock, "engine")
    assert load_state(dump_state(state), "x") == state


def test_packed_bytes_come_back_and_bombs_do_not() -> None:
    assert unpack(pack(b"a" * 1000)) == b"a" * 1000
    for text in ("!", "AAAA", pack(b"abc")[:-8]):
        with pytest.raises(ValueError):
            unpack(text)


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "format": lambda b: b.update(format=2),
    "made_by": lambda b: b.update(made_by="hand"),
    "kind": lambda b: b.update(kind="x"),
    "stack": lambda b: b.update(stack=7),
    "series": lambda b: b.update(series="0" * 64),
    "lock": lambda b: b["lock"].update(format=9),
    "lock path": lambda b: b["lock"]["series"]["paths"].update({"../x": []}),
    "root": lambda b: b.update(root="/etc"),
    "record": lambda b: b["record"].update(sha256=""),
    "record path": lambda b: b["record"]["rows"].update({"/etc/passwd": []}),
    "record place": lambda b: b["record"]["rows"].update({"a": [[-1, "a,,\n"]]}),
    "modes": lambda b: b.update(modes={"engine/a.py": "4755"}),
    "modes path": lambda b: b.update(modes={"..": "644"}),
    "kept": lambda b: b.update(kept={"engine/a.py": ["120000", pack(b"/etc/passwd")]}),
    "patch bytes": lambda b: b["patches"][0].update(zlib="x"),
    "patch directory": lambda b: b["patches"][0].update(directory="../.."),
    "patch sections": lambda b: b["patches"][0].update(sections=[-1]),
    "patch starts": lambda b: b["patches"][0].update(starts=[["../x", [0]]]),
    "patches": lambda b: b.update(patches={}),
    "missing": lambda b: b.pop("exclude"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_state_that_we_did_not_write_is_refused(
    state: State, edit: Callable[[dict[str, Any]], object]
) -> None:
    body = copy.deepcopy(json.loads(dump_state(state)))
    edit(body)
    try:
        found = load_state(json.dumps(body).encode(), "at/patchkit.json")
    except Refused as refusal:
        (finding,) = refusal.findings
        assert (finding.name, finding.where.file) == ("journal", "at/patchkit.json")
    else:
        assert found.patches == (), "an empty list of patches is a list"


def test_a_kept_file_is_a_file() -> None:
    packet = two_patches().packet()
    lock = excerpt(packet.lock, packet.chain, packet.paths())
    state = State(BUILD, SERIES, None, lock, kept={"engine/a.py": File(b"x"), "engine/n": None})
    assert load_state(dump_state(state), "x").kept == state.kept
