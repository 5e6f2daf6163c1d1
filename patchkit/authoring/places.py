"""Which work tree a person means, and whether it has something to say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.authoring.standing import target_pin
from patchkit.authoring.taking import Commits, take_files
from patchkit.authoring.workplace import Point, default_place, head_commit, read_point
from patchkit.derive.project import Project
from patchkit.errors import UsageFault
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Place:
    """A work tree that `new` or `edit` laid out."""

    at: str
    point: Point

    def speaks_for(self, store: Store, names: Sequence[str]) -> bool:
        """Whether a refresh of `names` means this tree: no name, or its own patch and there are
        changes in it (else the patch's file was edited by hand)."""
        if not names:
            return True
        own = {self.point.patch, os.path.splitext(self.point.patch)[0]}
        return len(names) == 1 and names[0] in own and self.is_changed(store)

    def is_changed(self, store: Store) -> bool:
        """Whether anything was done in the tree since it was laid out."""
        if head_commit(self.at) != self.point.start:
            return True
        with Commits(store, self.at) as commits:
            return bool(take_files(store, self.at, commits.tree(self.point.after)).changes)


def find_place(project: Project, start: str, pin: str | None, tree: str | None) -> Place | None:
    """The work tree at `tree`; else the one that `start` is in; else that of the pin; else the
    only one there is. None where there is none. Raises UsageFault, Refused(journal).
    """
    if tree is not None:
        point = read_point(tree)
        if point is None:
            raise UsageFault.because(
                f"--tree {tree} is no work tree of patchkit new or edit",
                next="patchkit edit PATCH --to DIR",
            )
        return Place(os.path.abspath(tree), point)
    around = _around(start)
    if around is not None and (pin is None or around.point.pin == pin):
        return around
    if pin is not None:
        return _at(default_place(project, project.pins.pin(pin).name))
    found = [p for name in project.pins.pins if (p := _at(default_place(project, name)))]
    if len(found) == 1:
        return found[0]
    return _at(default_place(project, target_pin(project, None).name)) if found else None


def _at(folder: str) -> Place | None:
    point = read_point(folder)
    return Place(folder, point) if point is not None else None


def _around(start: str) -> Place | None:
    at = os.path.abspath(start)
    while True:
        found = _at(at)
        if found is not None:
            return found
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above
