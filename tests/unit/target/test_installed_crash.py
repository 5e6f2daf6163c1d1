"""Whatever stops a command, the next one finds the journal and makes all old or all new."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault, Refused
from patchkit.files.lock import folder_locked
from patchkit.target.dist_info import find_dist, pending_journal
from patchkit.target.installed import Done, apply_pins, revert
from patchkit.target.installed_check import PATCHED, PRISTINE, status
from tests.unit.target.installing import Site, numbered, two_patches
from tests.unit.target.killing import DENIED, NO_SPACE, killed_at, refusing, stopped_at

SAMPLE = (1, 14, 27, 34, 45, 52)
"""Writes to stop at in the fast suite; the slow one takes them all."""
TOO_MANY = 400
Look = dict[str, tuple[int, bytes]]


class Twins:
    """One package before and after patching, and copies of both to break."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self.packet = two_patches().packet()
        self.old = Site(at / "old")
        self.old.install()
        (self.old.at / "engine/__pycache__").mkdir()
        (self.old.at / "engine/__pycache__/a.cpython-310.pyc").write_bytes(b"x")
        (self.old.at / "engine/old.py").chmod(0o664)
        self.new = self.copy(self.old, "new")
        assert apply_pins(self.new.sites, [self.packet]).written
        self.states = (self.old.look(), self.new.look())

    def copy(self, site: Site, name: str) -> Site:
        if (self.at / name).exists():
            shutil.rmtree(self.at / name)
        shutil.copytree(site.at, self.at / name, symlinks=True)
        return Site(self.at / name)

    def apply(self, site: Site) -> Done:
        return apply_pins(site.sites, [self.packet])

    def check(self, site: Site, number: int) -> None:
        """After a stop: either all is old or new, or the journal says that it is not."""
        found = status(find_dist(site.sites, "engine"), self.packet)
        if pending_journal(site.sites[0]) is not None:
            assert "journal" in {f.name for f in found.findings}, f"stopped at {number}"
        else:
            assert found.kind in (PRISTINE, PATCHED), f"stopped at {number}"
            assert site.look() in self.states, f"stopped at {number}"


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path)


def different(found: Look, wanted: Look) -> dict[str, object]:
    """The paths that differ, with both sides."""
    both = {*found, *wanted}
    return {p: (found.get(p), wanted.get(p)) for p in both if found.get(p) != wanted.get(p)}


def fault_of(command: Callable[[], object]) -> EnvironmentFault | None:
    """What the system refused, if it did."""
    try:
        command()
    except EnvironmentFault as fault:
        return fault
    return None


def break_and_mend(
    twins: Twins, start: Site, command: Callable[[Site], Done], number: int, *, forward: bool
) -> bool:
    """Kill `command` at one write, then run apply (forward) or revert; whether it was killed."""
    site = twins.copy(start, "broken")
    killed = killed_at(number, lambda: command(site))
    twins.check(site, number)
    if forward:
        assert twins.apply(site).ok
    else:
        with contextlib.suppress(Refused):  # nothing was patched yet
            assert revert(site.sites).ok
    wrong = different(site.look(), twins.states[1 if forward else 0])
    assert not wrong, f"stopped at {number}"
    return killed


@pytest.mark.parametrize("number", SAMPLE)
@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_a_killed_command_is_undone_by_the_next(twins: Twins, verb: str, number: int) -> None:
    start = twins.old if verb == "apply" else twins.new
    command = twins.apply if verb == "apply" else lambda site: revert(site.sites)
    break_and_mend(twins, start, command, number, forward=number % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["apply", "revert"])
def test_killed_at_every_write(twins: Twins, verb: str) -> None:
    start = twins.old if verb == "apply" else twins.new
    command = twins.apply if verb == "apply" else lambda site: revert(site.sites)
    for number in range(TOO_MANY):
        killed = break_and_mend(twins, start, command, number, forward=True)
        break_and_mend(twins, start, command, number, forward=False)
        if not killed:
            break
    assert 40 < number < TOO_MANY


@pytest.mark.slow
def test_killed_at_every_write_of_the_undoing(twins: Twins) -> None:
    broken = twins.copy(twins.old, "first")
    assert killed_at(45, lambda: twins.apply(broken))
    assert pending_journal(broken.sites[0]) is not None
    for number in range(TOO_MANY):
        if not break_and_mend(twins, broken, twins.apply, number, forward=number % 2 == 0):
            break
    assert 20 < number < TOO_MANY


@pytest.mark.parametrize("number", SAMPLE)
@pytest.mark.parametrize("code", [NO_SPACE, DENIED])
def test_a_refusal_of_the_system_rolls_back(twins: Twins, code: int, number: int) -> None:
    site = twins.copy(twins.old, "broken")
    with stopped_at(number, refusing(code)):
        said = fault_of(lambda: twins.apply(site))
    assert said is None or os.strerror(code) in said.findings[0].message
    assert min((different(site.look(), s) for s in twins.states), key=len) == {}
    assert twins.apply(site).ok
    assert site.look() == twins.states[1]


@pytest.mark.slow
@pytest.mark.parametrize("code", [NO_SPACE, DENIED])
def test_a_refusal_at_every_write(twins: Twins, code: int) -> None:
    for number in range(TOO_MANY):
        site = twins.copy(twins.new, "broken")
        with stopped_at(number, refusing(code)) as seen:
            fault_of(lambda: revert(site.sites))  # noqa: B023  (called at once)
        if pending_journal(site.sites[0]) is not None:
            # The journal itself could not be removed: the next command does.
            twins.check(site, number)
            assert revert(site.sites).ok
        wrong = min((different(site.look(), s) for s in twins.states), key=len)
        if number < len(seen) and seen[number] == "rmdir":
            wrong = {p: w for p, w in wrong.items() if not p.endswith("/")}  # an empty folder
        assert not wrong, f"refused at {number}"
        if len(seen) <= number:
            break
    assert 40 < number < TOO_MANY


def test_a_disk_that_stays_full_leaves_a_journal_and_is_mended_later(twins: Twins) -> None:
    site = twins.copy(twins.old, "broken")

    def full(name: str, args: tuple[object, ...]) -> None:
        raise OSError(NO_SPACE, os.strerror(NO_SPACE))

    real, count = os.open, 0

    def opening(*args: object, **more: object) -> int:
        nonlocal count
        if len(args) > 1 and isinstance(args[1], int) and args[1] & os.O_CREAT:
            count += 1
            if count > 9:
                full("open", args)
        return real(*args, **more)  # type: ignore[arg-type]

    os.open = opening  # type: ignore[assignment]
    try:
        with pytest.raises(EnvironmentFault):
            twins.apply(site)
    finally:
        os.open = real
    twins.check(site, count)
    done = twins.apply(site)
    assert done.ok
    assert site.look() == twins.states[1]


def test_a_file_edited_after_the_crash_is_named_and_kept(twins: Twins) -> None:
    site = twins.copy(twins.old, "broken")
    assert killed_at(45, lambda: twins.apply(site))
    (site.at / "engine/a.py").write_bytes(b"somebody's\n")
    with pytest.raises(Refused) as refusal:
        twins.apply(site)
    assert refusal.value.findings[0].name == "journal"
    assert (site.at / "engine/a.py").read_bytes() == b"somebody's\n"


def test_what_was_interrupted_is_said(twins: Twins) -> None:
    site = twins.copy(twins.old, "broken")
    assert killed_at(45, lambda: twins.apply(site))
    dry = apply_pins(site.sites, [twins.packet], dry=True)
    assert [f.name for f in dry.findings] == ["journal"]
    done = twins.apply(site)
    assert done.recovered is not None
    assert done.recovered.what == "apply"
    assert done.recovered.paths


def test_two_packages_are_rolled_back_together(tmp_path: Path) -> None:
    from tests.unit.target.installing import Series

    site = Site(tmp_path / "s")
    site.install()
    site.install({"other/x.py": numbered(9)}, "other", "2.0")
    before = site.look()
    other = Series({"other/x.py": numbered(9)}).add("o.patch", {"other/x.py": numbered(9, l2="!")})
    packets = [two_patches().packet(), other.packet(dist="other", version="2.0")]
    for number in (30, 45, 55, 65):
        assert killed_at(number, lambda: apply_pins(site.sites, packets))
        # Whichever package the next command is about, it finds the journal.
        done = apply_pins(site.sites, packets[1:], dry=True)
        if pending_journal(site.sites[0]) is not None:
            assert [f.name for f in done.findings] == ["journal"]
        with contextlib.suppress(Refused):  # nothing was patched yet
            revert(site.sites)
        assert different(site.look(), before) == {}


def test_one_of_two_at_once_waits(twins: Twins) -> None:
    site = twins.copy(twins.old, "busy")
    results: list[Done] = []
    with folder_locked(site.sites[0]):
        other = threading.Thread(target=lambda: results.append(twins.apply(site)))
        other.start()
        other.join(0.3)
        assert other.is_alive()
        assert site.look() == twins.states[0]
    other.join(20)
    assert results[0].written


def test_one_that_waited_too_long_is_told(twins: Twins) -> None:
    with folder_locked(twins.old.sites[0]), pytest.raises(EnvironmentFault) as fault:
        apply_pins(twins.old.sites, [twins.packet], wait=0.1)
    assert "another patchkit" in fault.value.findings[0].message


def test_two_processes_at_once_give_one_result(twins: Twins) -> None:
    site = twins.copy(twins.old, "busy")
    program = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).resolve().parents[3])!r}]\n"
        "from tests.unit.target.installing import Site, two_patches\n"
        "from patchkit.target.installed import apply_pins\n"
        "from pathlib import Path\n"
        f"done = apply_pins(Site(Path({str(site.at)!r})).sites, [two_patches().packet()])\n"
        "print(done.ok, done.written)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(run.communicate(timeout=60)[0].strip() for run in runs)
    assert said == ["True False", "True True"]
    assert site.look() == twins.states[1]
