"""One scene a writing verb: what stands before it, the command, and the command that follows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.place import Place
from tests.unit.target.installing import Site

DAY = ("--date", "2031-01-31")
WHO = ("--author", "A U Thor <author@example.org>")
LOOSE = """\
--- a/engine/lanes.py
+++ b/engine/lanes.py
@@ -20,3 +20,3 @@
 line 19
-line 20
+line twenty
 line 21
"""


@dataclass(frozen=True)
class Scene:
    """setup: makes what stands before. command: the verb. after: the reading command that comes
    next, which says what became of the stopped one. twice: exit codes of the command when it is
    run once more after a stop (1 where it was done already and says so). anew: where the work tree
    was left half laid out and says so with exit 2, the command that lays it out anew. code: its
    exit code where nothing stops it. resumed: what is typed in place of the command, once a
    rebase has begun."""

    setup: Callable[[Place], None]
    command: tuple[str, ...]
    after: tuple[str, ...] = ("check",)
    twice: tuple[int, ...] = (0,)
    anew: tuple[str, ...] = ()
    code: int = 0
    resumed: tuple[str, ...] = ()


def empty(place: Place) -> None:
    """An upstream, and an empty folder for a project."""
    source = place.at / "upstream" / "engine"
    source.mkdir(parents=True)
    (source / "lanes.py").write_text("".join(f"line {n}\n" for n in range(40)))
    (source / "__init__.py").write_text("")
    (place.at / "mine").mkdir()


def project(place: Place) -> None:
    """A project of two patches."""
    empty(place)
    place.must("init", "--upstream", "engine", "--source", "../upstream")
    for name, old, new in (("five", "line 5\n", "line V\n"), ("nine", "line 9\n", "line IX\n")):
        place.must("new", name, *DAY, *WHO)
        change(place, old, new)
        place.must("refresh", *DAY)


def closed(place: Place) -> None:
    """The same without the open work tree."""
    project(place)
    shutil.rmtree(place.at / "mine/build")


def change(place: Place, old: str, new: str) -> None:
    """Edit the file in the open work tree."""
    at = place.at / "mine/build/edit-base/engine/lanes.py"
    text = at.read_text()
    assert old in text
    at.write_text(text.replace(old, new, 1))


def edited(place: Place) -> None:
    """The first patch is open and changed."""
    project(place)
    place.must("edit", "five")
    change(place, "line V\n", "line five\n")


def stale(place: Place) -> None:
    """The lock is gone."""
    project(place)
    (place.at / "mine/series/base/series.lock").unlink()


def untidy(place: Place) -> None:
    """A patch that lint mends: blank context lines lost their blank, counts do not suffer."""
    project(place)
    at = place.at / "mine/series/base/nine.patch"
    at.write_bytes(at.read_bytes() + b"-- \n2.43.0\n\n")
    place.must("lock")


def with_loose(place: Place) -> None:
    """A patch beside the project."""
    project(place)
    (place.at / "loose.patch").write_text(LOOSE)


def folder(place: Place) -> None:
    """A loose patch and a folder it fits."""
    empty(place)
    (place.at / "loose.patch").write_text(LOOSE)
    (place.at / "tree/engine").mkdir(parents=True)
    (place.at / "tree/engine/lanes.py").write_text("".join(f"line {n}\n" for n in range(40)))


def patched_folder(place: Place) -> None:
    """A folder with a loose patch in it."""
    folder(place)
    place.must("apply", "../loose.patch", "--to", "../tree")


def applied(place: Place) -> None:
    """A work tree that is one patch behind the series."""
    project(place)
    place.must("apply")
    place.must("edit", "nine")
    change(place, "line 11\n", "line XI\n")
    place.must("refresh", *DAY)


def installed(place: Place) -> None:
    """A package that a loose patch fits."""
    empty(place)
    site = Site(place.at / "site")
    site.install()
    (place.at / "loose.patch").write_text(LOOSE.replace("lanes", "a"))


def patched_package(place: Place) -> None:
    """The same, patched."""
    installed(place)
    place.must("apply", "../loose.patch", "--installed", "--site", "../site")


def edited_package(place: Place) -> None:
    """The same, and its patched file edited by hand since."""
    patched_package(place)
    at = place.at / "site" / "engine" / "a.py"
    at.write_text(at.read_text().replace("line twenty\n", "line XX\n"))


NEAR: dict[str, Scene] = {
    "init": Scene(empty, ("init", "--upstream", "engine", "--source", "../upstream"), (), (0, 1)),
    "lock": Scene(stale, ("lock",)),
    "new": Scene(closed, ("new", "ten", *DAY, *WHO), twice=(0, 1)),
    "edit": Scene(project, ("edit", "five")),
    "refresh": Scene(edited, ("refresh", *DAY), anew=("edit", "five")),
    "import": Scene(with_loose, ("import", "../loose.patch", *DAY, *WHO), twice=(0, 1)),
    "lint": Scene(untidy, ("lint", "--fix")),
    "rename": Scene(project, ("rename", "five", "V"), twice=(0, 1, 2)),
    "move": Scene(project, ("move", "five", "--after", "nine")),
    "drop": Scene(project, ("drop", "nine"), twice=(0, 1, 2)),
    "export": Scene(project, ("export", "--format", "am", "-o", "../out"), (), (0, 1)),
    "apply": Scene(project, ("apply",)),
    "apply-again": Scene(applied, ("apply",)),
    "apply-loose": Scene(folder, ("apply", "../loose.patch", "--to", "../tree"), ()),
    "revert": Scene(patched_folder, ("revert", "--to", "../tree"), (), (0, 1)),
    "apply-installed": Scene(
        installed,
        ("apply", "../loose.patch", "--installed", "--site", "../site"),
        ("check", "--installed", "--site", "../site"),
    ),
    "revert-installed": Scene(
        patched_package,
        ("revert", "--installed", "--site", "../site"),
        ("check", "--installed", "--site", "../site"),
        (0, 1),
    ),
    "revert-edited": Scene(
        edited_package,
        ("revert", "--installed", "--site", "../site", "--discard-edits"),
        ("check", "--installed", "--site", "../site"),
        (0, 1),
    ),
    "cache": Scene(project, ("cache", "--clear")),
}
