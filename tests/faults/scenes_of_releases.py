"""Scenes of the verbs that carry, pin, build and publish."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.faults.place import Place
from tests.faults.scenes import DAY, WHO, Scene, closed
from tests.unit.build import wheels

ONTO = ("rebase", "--pin", "base", "--onto", "next")
WHEEL = "../engine-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"
BUILD = ("build", "--base-wheel", WHEEL, "--sha256", "{sha256}")
TREE = "build/rebase-base-next/engine/lanes.py"


def released(place: Place, old: str = "line 30\n", new: str = "line XXX\n") -> None:
    """A second release, which differs from the first in one line."""
    closed(place)
    mine = place.at / "mine"
    (place.at / "upstream").rename(place.at / "base")
    shutil.copytree(place.at / "base", place.at / "next")
    lanes = place.at / "next" / "engine" / "lanes.py"
    lanes.write_text(lanes.read_text().replace(old, f"a line\n{new}"))
    pins = (mine / "pins.toml").read_text().replace("../upstream", "../{pin}")
    (mine / "pins.toml").write_text(f'{pins}\n[pins.next]\nupstream = "engine"\n')
    place.must("check")


def contrary(place: Place) -> None:
    """A second release that changed what the patch nine changes."""
    released(place, "line 9\n", "line neuf\n")


def stopped(place: Place) -> None:
    """Stopped at that conflict."""
    contrary(place)
    assert place.run(*ONTO, *DAY).code == 1


def settled(place: Place) -> None:
    """The conflict is settled, and not yet told."""
    stopped(place)
    at = place.at / "mine" / TREE
    lines = at.read_text().partition("<<<<<<<")
    tail = lines[2].partition(">>>>>>>")[2].partition("\n")[2]
    at.write_text(f"{lines[0]}line neuf, IX\n{tail}")


def packed(place: Place) -> None:
    """The official wheel of the release."""
    closed(place)
    pins = place.at / "mine" / "pins.toml"
    pins.write_text(pins.read_text().replace("[pins", 'package = "engine"\n\n[pins', 1))
    _, digest = wheels.wheel(place.at, place.at / "upstream")
    (place.at / "sha256").write_text(digest)


def _lanes() -> bytes:
    return "".join(f"line {n}\n" for n in range(40)).encode()


def served(place: Place) -> None:
    """The upstream is a repository with a tag that no pin has."""
    closed(place)
    at = place.at / "server"
    at.mkdir()
    (at / "engine").mkdir()
    (at / "engine" / "lanes.py").write_bytes(_lanes())
    who = {f"GIT_{w}_{n}": "x" for w in ("AUTHOR", "COMMITTER") for n in ("NAME", "EMAIL", "DATE")}
    env = {"PATH": os.environ["PATH"], "HOME": os.devnull, **who}
    env |= {"GIT_AUTHOR_DATE": "@1 +0000", "GIT_COMMITTER_DATE": "@1 +0000"}
    for line in ("init -q", "add -A", "commit -qm x", "tag nightly"):
        subprocess.run(["git", *line.split()], cwd=at, env=env, check=True)
    pins = place.at / "mine" / "pins.toml"
    address = f'kind = "plain"\ngit = "file://{at}"\n'
    pins.write_text(pins.read_text().replace('kind = "plain"\n', address))


def half_pinned(place: Place) -> None:
    """A pin of which only the beginning of the commit is known."""
    served(place)
    place.must("pin", "nightly", "--add")
    pins = place.at / "mine" / "pins.toml"
    head, _, rest = pins.read_text().partition('commit = "')
    pins.write_text(f'{head}commit-prefix = "{rest[:9]}{rest[40:]}')


def laid_over(place: Place) -> None:
    """A folder of whole files beside the project."""
    closed(place)
    at = place.at / "over" / "engine"
    at.mkdir(parents=True)
    (at / "lanes.py").write_bytes(_lanes().replace(b"line 33\n", b"line XXXIII\n"))


def scripted(place: Place) -> None:
    """A script that edits the tree."""
    closed(place)
    at = place.at / "edit.sh"
    at.write_text("#!/bin/sh\nsed -i 's/^line 33$/line XXXIII/' \"$1/engine/lanes.py\"\n")
    at.chmod(0o755)


def brought(place: Place) -> None:
    """A clone with a commit of its own."""
    served(place)
    at = place.at / "server"
    (at / "engine" / "lanes.py").write_bytes(_lanes().replace(b"line 33\n", b"line XXXIII\n"))
    env = {"PATH": os.environ["PATH"], "HOME": os.devnull}
    line = ["git", "-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "-qam", "thirty-three"]
    subprocess.run([*line, "--date", "@1 +0000"], cwd=at, env=env, check=True)


def proven(place: Place) -> None:
    """A patch with a proof for a GPU."""
    closed(place)
    at = place.at / "mine" / "series" / "base" / "proofs"
    at.mkdir()
    (at / "test_nine.py").write_text(
        "import pytest\n\n\n@pytest.mark.gpu\n@pytest.mark.witness\ndef test_it() -> None:\n"
        "    assert True\n"
    )
    place.must("lock")


def uncached(place: Place) -> None:
    """Nothing is in the cache: the first command imports the source."""
    closed(place)
    shutil.rmtree(place.at / "cache")


IMPORT = ("import", *DAY, *WHO)
FAR: dict[str, Scene] = {
    "rebase": Scene(released, (*ONTO, *DAY), ("check", "--pin", "base"), (0, 1, 2), resumed=ONTO),
    "rebase-conflict": Scene(
        contrary, (*ONTO, *DAY), ("rebase", "status"), (1,), code=1, resumed=ONTO
    ),
    "rebase-continue": Scene(settled, ("rebase", "--continue"), ("rebase", "status"), (0, 1, 2)),
    "rebase-skip": Scene(stopped, ("rebase", "--skip", "nine"), ("rebase", "status"), (0, 1, 2)),
    "rebase-abort": Scene(stopped, ("rebase", "--abort"), ("rebase", "status"), (0, 1, 2)),
    "build": Scene(
        packed, ("build", "--base-wheel", WHEEL, "--sha256", "{sha256}", "-o", "../out"), ()
    ),
    "pin-add": Scene(served, ("pin", "nightly", "--add"), ("list", "--pin", "base"), (0, 1)),
    "pin-complete": Scene(half_pinned, ("pin", "nightly", "--complete"), ("list", "--pin", "base")),
    "report": Scene(closed, ("report", "-o", "../site"), ()),
    "bundle": Scene(closed, ("bundle", "-o", "../b.pyz"), ()),
    "export-quilt": Scene(closed, ("export", "-o", "../out"), (), (0, 1)),
    "export-single": Scene(closed, ("export", "--format", "single", "-o", "../out"), (), (0, 1)),
    "export-dir": Scene(closed, ("export", "--format", "dir", "-o", "../out"), (), (0, 1)),
    "import-overlay": Scene(laid_over, (*IMPORT, "--overlay", "../over"), twice=(0, 1)),
    "import-run": Scene(scripted, (*IMPORT, "--run", "../edit.sh {tree}"), twice=(0, 1)),
    "import-commits": Scene(
        brought, (*IMPORT, "--commits", "nightly..HEAD", "--from", "../server"), twice=(0, 1)
    ),
    "prove-export": Scene(proven, ("prove", "--gpu", "--export", "../packed"), (), (0, 1, 2)),
    "first-check": Scene(uncached, ("check",)),
}
