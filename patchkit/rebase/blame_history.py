"""The commit that changed the lines of a hunk: the history is bisected, nothing is checked out.

Each commit that is looked at costs the reading of one file; a thousand commits are ten of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from patchkit.rebase.blame import GONE, HOLDS, Need, Seen, judge
from patchkit.rebase.moves import moves
from patchkit.source.history import History, Line, Told
from patchkit.store.pipes import Missing
from patchkit.store.tree import StoreTree

MOST_NAMES = 8
"""Renames of one file that are followed."""


@dataclass(frozen=True)
class Culprit:
    """What the history says of one hunk.

    told: the commit since which so much is done to it; None where it holds, or where `why` says
    why none can be named. seen, path: the hunk at the new end of the history, and its file's name
    there. renames: (commit, new name), oldest first. looked: commits of which files were read, of
    `of`.
    """

    told: Told | None
    seen: Seen
    path: str
    renames: tuple[tuple[Told, str], ...] = ()
    looked: int = 0
    of: int = 0
    why: str = ""


@dataclass
class _Walk:
    """One hunk followed. names: (place in the line, the file's name from there on)."""

    need: Need
    names: list[tuple[int, str]]
    looked: set[str] = field(default_factory=set)

    def name(self, place: int) -> str:
        """The file's name at a place of the line."""
        return next(n for since, n in reversed(self.names) if place >= since)


@dataclass
class Bisection:
    """A history between the commits of two pins. base: the old pin's tree."""

    history: History
    line: Line
    base: StoreTree

    def blame(self, need: Need) -> Culprit:
        """The commit that did it. Raises EnvironmentFault(git) in a clone that lacks its files."""
        try:
            return self._blame(need)
        except Missing as missing:
            raise self.history.partial(missing.oid) from None

    def _blame(self, need: Need) -> Culprit:
        commits = self.line.commits
        walk = _Walk(need, [(-1, need.path)])
        if not commits:
            return Culprit(None, Seen(HOLDS, need.lines), need.path, why="they are one commit")
        end = len(commits) - 1
        while len(walk.names) <= MOST_NAMES and self._seen(walk, end).state == GONE:
            if not self._follow(walk):
                break
        last, told, why = self._seen(walk, end), None, ""
        if last.state != HOLDS:
            told, why = self._since(walk, last.rank)
        renames = tuple((self.history.told(commits[at]), name) for at, name in walk.names[1:])
        looked = len(walk.looked)
        return Culprit(told, last, walk.name(end), renames, looked, len(commits), why)

    def _follow(self, walk: _Walk) -> bool:
        """Find the commit that took the file away, and the name it gave it; False for none."""
        since, name = walk.names[-1]
        start = max(since, 0)
        at = _first(
            start,
            len(self.line.commits) - 1,
            lambda place: self._seen(walk, place).state == GONE,
        )
        new = self._renamed(walk, name, at)
        if new is not None:
            walk.names.append((at, new))
        return new is not None

    def _since(self, walk: _Walk, rank: int) -> tuple[Told | None, str]:
        """The first commit at which at least so much was done."""
        commits = self.line.commits

        def done(place: int) -> bool:
            return self._seen(walk, place).rank >= rank

        if self.line.fork and done(-1):
            return None, (
                f"it is so at {self.line.fork[:12]} already, where the two releases part: "
                "the old one has it from its own branch"
            )
        if not self.line.fork and done(0):
            return None, (
                f"the history ends at {commits[0][:12]}, where it is so already: "
                f"git -C {self.history.path} fetch --unshallow"
            )
        return self.history.told(commits[_first(0, len(commits) - 1, done)]), ""

    def _commit(self, place: int) -> str:
        return self.line.commits[place] if place >= 0 else self.line.fork

    def _seen(self, walk: _Walk, place: int) -> Seen:
        commit = self._commit(place)
        walk.looked.add(commit)
        file = self.history.tree(commit).get(walk.name(place))
        return judge(walk.need, self.base.get(walk.need.path), file)

    def _renamed(self, walk: _Walk, name: str, place: int) -> str | None:
        """The name that the commit at `place` gave the file `name` of its parent."""
        parent = self._commit(place - 1)
        if not parent:
            return None
        walk.looked.add(parent)
        before, after = self.history.tree(parent), self.history.tree(self._commit(place))
        return moves(before, after, [name]).get(name)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first of low..high from which on `holds` is true, found by halving; true at `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
