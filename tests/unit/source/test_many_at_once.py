"""Eight applies of different pins at once in one new cache, some of them killed in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import sha256, tar_of

PINS = range(8)
FILES = 300

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Shop:
    """A project of eight pins and their sdists in a folder. trees: pin -> the locked tree."""

    at: Path
    files: Path
    trees: dict[str, str]

    def start(self, cache: Path, *args: str) -> subprocess.Popen[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        env |= {"PATCHKIT_CACHE": str(cache), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "patchkit", "-C", str(self.at), *args, "--json"],
            env=env | {"PIP_FIND_LINKS": str(self.files)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, cache: Path, *args: str) -> dict[str, object]:
        process = self.start(cache, *args)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, out + err
        found: dict[str, object] = json.loads(out)
        return found


def lines(pin: int, number: int) -> list[str]:
    return [f"value_{n} = {pin * 1000 + number}\n" for n in range(40)]


def patch(pin: int, number: int) -> str:
    """The eleventh line of one file replaced."""
    path, old = f"demo/m{number}.py", lines(pin, number)
    context = "".join(f" {line}" for line in old[7:10])
    after = "".join(f" {line}" for line in old[11:14])
    return (
        "From: A <a@example.invalid>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\n"
        f"Subject: change {number}\nForwarded: no\nLast-Update: 2026-11-30\n\nWhy.\n---\n"
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -8,7 +8,7 @@\n"
        f"{context}-{old[10]}+changed = {number}\n{after}"
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    at, files = tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("sdists")
    toml = ['[upstreams.demo]\nkind = "plain"\npypi = "demo"\npackage = "demo"\n']
    for pin in PINS:
        name = f"demo-1.{pin}.tar.gz"
        tree = {f"demo/m{n}.py": (0o644, "".join(lines(pin, n)).encode()) for n in range(FILES)}
        data = tar_of(tree, f"demo-1.{pin}")
        (files / name).write_bytes(data)
        toml.append(
            f'[pins."v1.{pin}"]\nupstream = "demo"\n'
            f'[pins."v1.{pin}".files]\n"{name}" = "sha256:{sha256(data)}"\n'
        )
        series = at / "series" / f"v1.{pin}"
        series.mkdir(parents=True)
        for number in range(20):
            (series / f"change-{number}.patch").write_text(patch(pin, number))
        names = "".join(f"change-{number}.patch\n" for number in range(20))
        (series / "series").write_text(names)
    (at / "pins.toml").write_text("".join(toml))
    made = Shop(at, files, {})
    cache = tmp_path_factory.mktemp("locking")
    for pin in PINS:
        made.run(cache, "lock", "--pin", f"v1.{pin}")
        lock = json.loads((at / "series" / f"v1.{pin}" / "series.lock").read_text())
        made.trees[f"v1.{pin}"] = lock["series"]["trees"]["sdist"][-1][1]
    assert len(set(made.trees.values())) == len(PINS)
    return made


def finished(running: Sequence[subprocess.Popen[str]], pins: Sequence[str], shop: Shop) -> None:
    """Every process has given its pin's locked tree."""
    for process, pin in zip(running, pins, strict=True):
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, out + err
        assert json.loads(out)["tree"] == shop.trees[pin]


def fsck(cache: Path) -> None:
    git_dir = cache / "store-1.git"
    done = subprocess.run(
        ["git", f"--git-dir={git_dir}", "fsck", "--full", "--strict", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_eight_applies_of_different_pins_share_a_new_cache(shop: Shop, tmp_path: Path) -> None:
    cache, pins = tmp_path / "cache", sorted(shop.trees)
    for _ in range(2):  # a new cache; one that knows it all
        finished(
            [shop.start(cache, "apply", "--pin", pin, "--tree-only") for pin in pins], pins, shop
        )
    fsck(cache)


@pytest.mark.parametrize("seed", range(4))
def test_kills_in_the_middle_cost_nothing_but_time(shop: Shop, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cache, pins = tmp_path / "cache", sorted(shop.trees)
    targets = {pin: tmp_path / f"tree-{pin}" for pin in pins}

    def start(pin: str) -> subprocess.Popen[str]:
        return shop.start(cache, "apply", "--pin", pin, "--to", str(targets[pin]))

    running = {pin: start(pin) for pin in pins}
    struck = chance.sample(pins, 4)
    for pin in struck:
        time.sleep(chance.random() * 0.5)
        try:
            os.killpg(running[pin].pid, signal.SIGKILL)  # with every git it has started
        except ProcessLookupError:
            pass
        running[pin].communicate()
    assert -signal.SIGKILL in {running[pin].returncode for pin in struck}
    others = [pin for pin in pins if pin not in struck]
    finished([running[pin] for pin in others], others, shop)
    fsck(cache)
    finished([start(pin) for pin in struck], struck, shop)
    fsck(cache)
    for pin in pins:
        for args in (("rev-parse", "HEAD^{tree}"), ("status", "--porcelain")):
            done = subprocess.run(
                ["git", "-C", str(targets[pin]), *args], capture_output=True, text=True, check=True
            )
            assert done.stdout.strip() == (shop.trees[pin] if args[0] == "rev-parse" else "")
    assert not list(cache.rglob("*.part"))


def test_a_cleared_cache_is_empty_and_is_filled_again(shop: Shop, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shop.run(cache, "apply", "--pin", "v1.0", "--tree-only")
    before = shop.run(cache, "cache")
    freed = shop.run(cache, "cache", "--clear")
    after = shop.run(cache, "cache")
    assert freed["parts"] == before["parts"]
    parts = {part["name"]: part["bytes"] for part in before["parts"]}  # type: ignore[attr-defined]
    assert parts["store-1.git"] > 100_000
    assert parts["downloads"] > 1000
    assert all(part["bytes"] == 0 for part in after["parts"])  # type: ignore[attr-defined]
    again = shop.run(cache, "apply", "--pin", "v1.0", "--tree-only")
    assert again["tree"] == shop.trees["v1.0"]
