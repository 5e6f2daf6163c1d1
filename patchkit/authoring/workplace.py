"""The git work tree in which a patch is made or changed, and what it was made for.

It is a work tree as `apply` writes one, at a point of the series, with three refs more: the tag
`base` (the bare upstream), the tag `start` (the point), and the branch `series` (every patch),
so that `git rebase -i base` and `git rebase --onto HEAD start series` need no ids.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace

from patchkit.authoring.standing import Standing
from patchkit.derive.derive import commit_of
from patchkit.derive.outputs import output_folder
from patchkit.derive.project import Project
from patchkit.derive.selection import WHOLE
from patchkit.errors import Finding, Refused, Where, unreadable
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.root import Root
from patchkit.series.header import Header
from patchkit.store.commits import Chain, Commit
from patchkit.target.checkout import copy_objects, head_commit, put_refs
from patchkit.target.worktree import BRANCH, Wanted, Written, laid_out, write

STATE = os.path.join(".git", "patchkit", "edit.json")
FORMAT = 1
SERIES_BRANCH = "series"


@dataclass(frozen=True)
class Point:
    """What a work tree was made for.

    patch: the one that `refresh` writes. fresh: it is not in the series yet. before, after: ids
    of the trees before and after it (the same where it is fresh). base, start: commits. guard,
    author, date, subject: of a fresh patch, as `new` was told.
    """

    pin: str
    patch: str
    fresh: bool
    before: str
    after: str
    base: str
    start: str
    guard: str = ""
    author: str = ""
    date: str = ""
    subject: str = ""


def default_place(project: Project, pin: str) -> str:
    """Where the work tree of a pin stands when nothing else is said."""
    return output_folder(project, f"edit-{pin}")


def near(at: str) -> str:
    """A folder as a person there would type it."""
    shown = os.path.relpath(at)
    return at if shown.startswith("..") else shown


def series_chain(standing: Standing) -> Chain:
    """A commit of the base, then one a patch: the ids that `apply --all` gives."""
    steps = [
        commit_of(header, name, outcome.changes)
        for name, header, outcome in zip(
            standing.names, standing.series.headers, standing.derived.outcomes, strict=True
        )
    ]
    title = Commit({}, message=f"{standing.pin.upstream} {standing.pin.name}")
    return standing.store.commit_chain(standing.base.tree_id, steps, title)


def write_place(
    standing: Standing, at: str, count: int, patch: str, new: Header | None = None, guard: str = ""
) -> Written:
    """Make the work tree at `at` with the first `count` patches, for `patch`.

    new, guard: header and guard of a patch that is to be made; without them `patch` is the last
    of the `count`.
    Raises Refused(foreign-edit, target-exists) where work would be lost, EnvironmentFault.
    """
    chain = series_chain(standing)
    base = standing.base
    base.complete(standing.store)
    commits, trees = chain.commits[: count + 1], chain.trees[: count + 1]
    tag = f"{standing.pin.name}+pk{trees[-1][:12]}"
    wanted = Wanted(standing.pin.name, WHOLE, tag, commits, trees, dict(base.generated))
    written = write(standing.store, wanted, at)
    copy_objects(standing.store, chain.commits[-1], (commits[-1],), at)
    point = Point(
        standing.pin.name,
        patch,
        new is not None,
        trees[-1] if new is not None else trees[-2],
        trees[-1],
        commits[0],
        commits[-1],
        author=new.author if new is not None else "",
        date=new.date if new is not None else "",
        subject=new.subject if new is not None else "",
        guard=guard,
    )
    keep_point(at, point)
    put_refs(
        at,
        {
            "refs/tags/base": commits[0],
            "refs/tags/start": commits[-1],
            f"refs/heads/{SERIES_BRANCH}": chain.commits[-1],
        },
    )
    return written


def keep_point(at: str, point: Point) -> None:
    """Record what the work tree is for."""
    where = os.path.join(at, STATE)
    make_folder(os.path.dirname(where))
    body = {"format": FORMAT, **asdict(point)}
    write_file(where, (json.dumps(body, indent=1) + "\n").encode("ascii"))


def rename_point(at: str, pin: str, old: str, new: str) -> bool:
    """Say of the work tree at `at` that its patch is called `new`, where it is for `old`."""
    try:
        point = read_point(at)
    except Refused:
        return False
    if point is None or point.fresh or (point.pin, point.patch) != (pin, old):
        return False
    keep_point(at, replace(point, patch=new))
    return True


def read_point(at: str) -> Point | None:
    """What the work tree at `at` is for; None where there is none, or where a killed command had
    begun to lay it out for something else. Raises Refused(journal).
    """
    where = os.path.join(at, STATE)
    if not os.path.isfile(where):
        return None
    try:
        body = json.loads(read_file(where))
        if body.pop("format") != FORMAT:
            raise ValueError("another format")
        point = Point(**body)
        for value in asdict(point).values():
            if not isinstance(value, str | bool):
                raise TypeError("not text")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Refused(
            Finding(
                "journal",
                f"the record of what the work tree is for cannot be read: {unreadable(error)}",
                Where(file=where),
                next="patchkit edit PATCH --to another folder, and bring your changes there",
            )
        ) from error
    return point if laid_out(at) == point.start else None


def unfinished(at: str) -> str:
    """The git command that is not done in the work tree, "" where none is."""
    root = Root(os.path.join(at, ".git"))
    for name, what in (
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ):
        if root.stat(name) is not None:
            return what
    return ""


def require_finished(at: str) -> None:
    """Raise Refused(conflict) in the middle of a rebase, merge or cherry-pick."""
    what = unfinished(at)
    if what:
        raise Refused(
            Finding(
                "conflict",
                f"a git {what} is not finished in {near(at)}",
                Where(file=at),
                expected="a work tree that no git command is in the middle of",
                found=f"a {what}",
                next=f"git -C {near(at)} {what} --continue, or --abort",
            )
        )


__all__ = ["BRANCH", "Point", "head_commit", "read_point", "write_place"]
