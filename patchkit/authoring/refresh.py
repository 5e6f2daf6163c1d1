"""`refresh`: what was done in the work tree becomes the patch; later patches are carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from patchkit.authoring.builder import Builder
from patchkit.authoring.edit import chosen_guard
from patchkit.authoring.headers import typed
from patchkit.authoring.messages import header_of
from patchkit.authoring.sealing import Ready, seal
from patchkit.authoring.standing import Standing, unsealed
from patchkit.authoring.taking import SHOWN, Commits, Taken, take_files
from patchkit.authoring.when import When
from patchkit.authoring.workplace import Point, head_commit, near, require_finished
from patchkit.derive.carry import renames_of
from patchkit.engine.model import File
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Field, Header

ADVICE = (
    "in {at}: git commit -a --amend --no-edit, git rebase --onto HEAD start series (git stops "
    "where it conflicts), then patchkit refresh --from-commits"
)
FRESH_ADVICE = ADVICE.replace("git commit -a --amend --no-edit", "git commit -a")


@dataclass(frozen=True)
class Refreshed:
    """A refreshed series. count: how many patches the work tree then holds."""

    ready: Ready
    patch: str
    count: int


def refresh(
    standing: Standing,
    point: Point,
    at: str,
    moment: When,
    *,
    add: bool = False,
    guard: str | None = None,
    subject: str | None = None,
) -> Refreshed:
    """The series with the work tree's files as the patch that it was made for.

    add: new files count although git does not track them. guard, subject: set what the patch has.
    Raises Refused: a later patch breaks, the series changed under the work tree, nothing differs.
    """
    require_finished(at)
    standing.whole()
    was, point = point.patch, renamed(standing, point)
    index, place = locate(standing, point, at)
    taken = take_files(standing.store, at, standing.store.tree(point.before), add=add)
    if index is not None and not point.fresh:
        _require_unmoved(standing, point, index, taken.changes, at)
    advice = (FRESH_ADVICE if index is None else ADVICE).format(at=near(at))
    builder = Builder(standing, advice, moment.day)
    builder.find(unsealed(standing, {point.patch}))
    builder.find(_untracked(taken.untracked, point.patch, at))
    for each in range(place):
        builder.keep(each)
    header, wanted = _header(standing, point, index, at, moment)
    if subject is not None:
        header = typed(replace(header, subject=subject))
    if guard is not None:
        wanted = chosen_guard(point.patch, guard)
    renames: Mapping[str, str] = {}
    if index is not None:
        entry = standing.series.entries[index]
        renames = renames_of(
            standing.series.patches[index], Root(entry.strip), reverse=entry.reverse
        )
    said = [f"was {was} when the work tree was laid out"] if was != point.patch else []
    builder.write(
        point.patch, header, taken.changes, guard=wanted, renames=renames, like=index, said=said
    )
    for each in range(place + (index is not None), len(standing.names)):
        builder.keep(each)
    return Refreshed(seal(builder), point.patch, place + 1)


def renamed(standing: Standing, point: Point) -> Point:
    """The point with the name that its patch has now: the one that makes the same trees of the
    same, where the series knows the name of before no more."""
    if point.fresh or point.patch in standing.names:
        return point
    trees = standing.trees
    same = [
        name
        for name, before, after in zip(standing.names, trees, trees[1:], strict=False)
        if (before, after) == (point.before, point.after)
    ]
    return replace(point, patch=same[0]) if len(same) == 1 else point


def locate(standing: Standing, point: Point, at: str) -> tuple[int | None, int]:
    """Where the work tree's patch stands: its index (None: not in the series), and its place.

    The tree before it must still be what the work tree began with. Raises Refused.
    """
    trees = standing.trees
    if point.patch in standing.names:
        index = standing.names.index(point.patch)
        if trees[index] != point.before:
            raise Refused(moved(standing, point, at, f"tree {trees[index]}"))
        return index, index
    if not point.fresh:
        raise Refused(moved(standing, point, at, "it is not in the series any more"))
    places = [n for n, tree in enumerate(trees) if tree == point.before]
    if not places:
        raise Refused(moved(standing, point, at, "no point of the series has that tree now"))
    return None, places[-1]


def _require_unmoved(
    standing: Standing, point: Point, index: int, changes: Mapping[str, File | None], at: str
) -> None:
    """The patch itself was not changed since, unless the work tree says the same already."""
    now = standing.trees[index + 1]
    if now == point.after:
        return
    found = standing.store.write_tree(point.before, changes)
    if found == now:
        return
    raise Refused(moved(standing, point, at, f"the patch in the series gives tree {now}"))


def moved(standing: Standing, point: Point, at: str, found: str) -> Finding:
    """The finding that the series is not what the work tree began with."""
    name = show_path(point.patch)
    again = f"patchkit edit {name}"
    if point.patch not in standing.names:
        again = f"patchkit new {name}" if point.fresh else "patchkit edit, with its name of now"
    return Finding(
        "not-built-from-this",
        f"the series changed under the work tree of {name} since it was laid out",
        Where(patch=point.patch, file=at),
        expected=f"tree {point.before} before the patch, and {point.after} with it",
        found=found,
        next=f"git -C {near(at)} stash --include-untracked, {again}, git -C {near(at)} stash pop, "
        "then patchkit refresh",
    )


def _header(
    standing: Standing, point: Point, index: int | None, at: str, moment: When
) -> tuple[Header, str | None]:
    """Header and guard: the patch's own, with what an amended commit message says."""
    if index is not None:
        header = standing.series.headers[index]
        guard = standing.series.entries[index].guard
    else:
        fields = (
            Field("Origin", "vendor"),
            Field("Forwarded", "no"),
            Field("Last-Update", moment.day),
        )
        header = Header(point.author, point.date, point.subject, fields)
        guard = point.guard or None
    commit = _own_commit(standing, point, at)
    if commit is None:
        return header, guard
    told = header_of(commit, header, point.patch, fresh=index is None)
    return told.header, guard if told.guard is None else told.guard or None


def _own_commit(standing: Standing, point: Point, at: str) -> Taken | None:
    """The commit whose message speaks for the patch, where the person made or amended one."""
    if head_commit(at) == point.start:
        return None
    with Commits(standing.store, at) as commits:
        try:
            taken = commits.since(point.base)
        except Refused:
            return None  # not one line: the files count all the same
    ids = [commit.commit for commit in taken]
    if point.start in ids or point.start == point.base:
        new = taken[ids.index(point.start) + 1 :] if point.start in ids else taken
        # On top of an old patch commits are more of the same; for a new one they are the patch.
        return new[0] if point.fresh and new else None
    amended = [c for c in taken if not point.fresh and c.before == point.before]
    return amended[0] if amended else None


def _untracked(paths: tuple[str, ...], patch: str, at: str) -> list[Finding]:
    if not paths:
        return []
    shown = ", ".join(map(show_path, paths[:SHOWN]))
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return [
        Finding(
            "unused",
            f"{len(paths)} new file(s) are not tracked, so they are not in {show_path(patch)}: "
            f"{shown}{more}",
            Where(patch=patch, file=paths[0]),
            next=f"git -C {near(at)} add those that belong to it, or patchkit refresh --add; "
            "then refresh again",
            note=True,
        )
    ]
