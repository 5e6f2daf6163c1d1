"""Which patch a commit is, where its message does not say so: a reworded one has lost its line
Patch-Name, a renamed one states the name of before.

A commit is a patch by what it does: the same as the patch does, on the tree that it stands on.
What is not known so is asked, for a patch that is taken for another one loses guard and header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from patchkit.authoring.form import equal
from patchkit.authoring.messages import is_fold, names_in
from patchkit.authoring.standing import Standing
from patchkit.authoring.taking import SHOWN, Commits, Taken
from patchkit.derive.carry import carry, is_whole, renames_of
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Refused, Where


@dataclass(frozen=True)
class Whose:
    """The patch that a commit is. like: its name in the series as it stands. said: how that is
    known."""

    name: str
    like: str
    said: str


def whose(
    standing: Standing,
    commits: Commits,
    taken: Sequence[Taken],
    laid_out: Sequence[Taken],
    count: int,
    fresh: str,
) -> dict[str, Whose]:
    """Commit id -> the patch, for those that do not name one of the series.

    laid_out: the commits that the work tree began with; count: how many patches of the series
    those are. fresh: the name of a patch that is to be new. Raises Refused(missing-patch) where
    commits without a name and patches without a commit are left over.
    """
    now = _names_now(standing, laid_out)
    named = {now.get(name, name) for commit in taken for name in names_in(commit.message)}
    missing = [name for name in standing.names if name not in named]
    found: dict[str, Whose] = {}
    nameless: list[Taken] = []
    for commit in taken:
        stated = names_in(commit.message)
        if is_fold(commit.subject) or (stated and stated[0] in standing.names):
            continue
        if stated and stated[0] in now:
            found[commit.commit] = Whose(now[stated[0]], now[stated[0]], f"was {stated[0]}")
            continue
        name = next((n for n in missing if _does(standing, commits, commit, n)), None)
        if name is None:
            nameless += [] if stated else [commit]
            continue
        missing.remove(name)
        if not stated:
            found[commit.commit] = Whose(name, name, "known by its effect, no Patch-Name")
        else:
            found[commit.commit] = Whose(stated[0], name, f"was {name}")
    left = [name for name in missing if name in standing.names[:count]]
    if fresh and nameless:
        nameless.remove(_new_one(taken, nameless))
    if left and nameless:
        raise Refused(*(_asked(commit, left) for commit in nameless[:SHOWN]))
    return found


def _names_now(standing: Standing, laid_out: Sequence[Taken]) -> dict[str, str]:
    """Names that the series had when the tree was laid out -> those of the same patches now."""
    trees = standing.trees
    now = dict(zip(pairwise(trees), standing.names, strict=True))
    out: dict[str, str] = {}
    for commit in laid_out:
        name = now.get((commit.before, commit.after))
        for old in names_in(commit.message)[:1]:
            if name is not None and old not in standing.names:
                out[old] = name
    return out


def _does(standing: Standing, commits: Commits, commit: Taken, name: str) -> bool:
    """Whether the commit does what the patch does, and all of it: where a half of the patch is in
    the tree already, the other half makes the same of it and is another change.
    """
    index = standing.names.index(name)
    entry = standing.series.entries[index]
    changes = commits.changes(commit.before, commit.after)
    tree = commits.tree(commit.before)
    before, theirs = standing.versions.after(index), standing.changes(index)
    renames = renames_of(standing.series.patches[index], Root(entry.strip), reverse=entry.reverse)
    carried = carry(before, theirs, tree, renames)
    if carried.clashes or not changes or not equal(carried.changes, changes):
        return False
    return is_whole(before, theirs, tree, changes, renames)


def _new_one(taken: Sequence[Taken], nameless: Sequence[Taken]) -> Taken:
    """The commit that a tree of `new` is for: the first one on top of what it began with."""
    last = max((i for i, commit in enumerate(taken) if names_in(commit.message)), default=-1)
    return next((c for c in nameless if taken.index(c) > last), nameless[0])


def _asked(commit: Taken, missing: Sequence[str]) -> Finding:
    shown = ", ".join(map(show_path, missing))
    return Finding(
        "missing-patch",
        f"the commit {commit.commit[:12]} ({commit.subject}) does not say which patch it is, and "
        f"no commit is {shown}",
        Where(patch=missing[0]),
        expected="a line Patch-Name: in the message of each commit, as long as a patch has none",
        found="none in this one",
        next=f"git rebase -i base, reword it: a last line `Patch-Name: {missing[0]}` where it is "
        "that patch; where it is a new one, the line with a name of its own",
    )
