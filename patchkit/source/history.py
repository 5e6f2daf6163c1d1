"""The first-parent history of a repository of the user's, read over one long-lived pipe.

Commits are read one by one down their first parents, so a shallow clone is as good as its depth,
and nothing of the repository is run. Trees and files are read only of the commits that are asked
for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, zip_longest

from patchkit.errors import EnvironmentFault, Finding, Refused, UsageFault, Where
from patchkit.series.pins import Pin
from patchkit.source.checkout import Checkout
from patchkit.store.pipes import Missing, ObjectReader
from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree

LONGEST = 100_000
"""Commits walked from either end before they are said to have nothing in common."""

_PARENT = re.compile(rb"tree [0-9a-f]{40}\nparent ([0-9a-f]{40})\n")
_NUMBER = re.compile(r"\(#(\d+)\)|^Merge pull request #(\d+)\b")


@dataclass(frozen=True)
class Told:
    """What a commit says of itself. day: of the committer, in his own time zone. number: of the
    pull request that its subject names, 0 for none."""

    commit: str
    subject: str
    author: str
    day: str
    number: int = 0


@dataclass(frozen=True)
class Line:
    """A stretch of first parents. fork: the last commit that both ends have, "" where the history
    does not reach it; commits: those after it up to the new end, oldest first. whole: whether the
    old end is the fork itself."""

    fork: str
    commits: tuple[str, ...]
    whole: bool


@dataclass
class History:
    """An opened repository; see `open_history`. read: commits whose tree was asked for."""

    path: str
    store: Store
    checkout: Checkout
    objects: ObjectReader
    read: set[str] = field(default_factory=set)
    _trees: dict[str, StoreTree] = field(default_factory=dict)

    def commit_of(self, pin: Pin) -> str:
        """The pin's commit; for a pin that states none, its tag's. Raises Refused(pin-mismatch)."""
        found = self.checkout.commit(self.store, pin)
        if not found and not (pin.commit or pin.commit_prefix):
            tag = self.checkout.tags.get(pin.name, "")
            found = self.checkout.peeled(self.store, [tag])[0] if tag else ""
        if found:
            return found
        stated = pin.commit or pin.commit_prefix
        raise Refused(
            Finding(
                "pin-mismatch",
                f"the history does not have the commit of {pin.name}",
                Where(file=self.path),
                expected=f"commit {stated}" if stated else f"a tag {pin.name}",
                found=self.checkout.described(self.store),
                next=f"git -C {self.path} fetch origin {stated or 'tag ' + pin.name}",
            )
        )

    def line(self, old: str, new: str) -> Line:
        """The first parents of `new` down to the newest one that `old` has, too.

        A release is often cut from a branch of its own: then the fork is below it.
        """
        mine: dict[str, int] = {}
        others: set[str] = set()
        for one, two in islice(zip_longest(self._down(new), self._down(old)), LONGEST):
            if one is not None:
                mine[one] = len(mine)
            if two is not None:
                others.add(two)
            # Both walks meet the fork before anything below it.
            for commit in (one, two):
                if commit in mine and commit in others:
                    after = list(mine)[: mine[commit]]
                    return Line(commit, tuple(reversed(after)), commit == old)
        return Line("", tuple(reversed(mine)), False)

    def _down(self, commit: str) -> Iterator[str]:
        """The commit and its first parents, as far as the repository has them."""
        while commit:
            try:
                raw = self.objects.read(commit, "commit")
            except Missing:
                return  # a shallow clone ends here
            yield commit
            found = _PARENT.match(raw)
            commit = found[1].decode("ascii") if found else ""

    def tree(self, commit: str) -> StoreTree:
        """The commit's tree. Reading from it raises EnvironmentFault(git) in a partial clone."""
        known = self._trees.get(commit)
        if known is None:
            self.read.add(commit)
            raw = self.objects.read(commit, "commit")
            known = StoreTree(raw[5:45].decode("ascii"), self.objects, self._lacking)
            self._trees[commit] = known
        return known

    def told(self, commit: str) -> Told:
        """Subject, author, day and pull request of a commit."""
        raw = self.objects.read(commit, "commit")
        head, _, message = raw.partition(b"\n\n")
        lines = message.decode("utf-8", "replace").strip().splitlines()
        subject = lines[0].strip() if lines else ""
        fields = dict(
            line.partition(" ")[::2] for line in head.decode("utf-8", "replace").splitlines()
        )
        author = fields.get("author", "").partition(" <")[0]
        numbers = [n for pair in _NUMBER.findall(subject) for n in pair if n]
        number = int(numbers[-1]) if numbers else 0
        return Told(commit, subject, author, _day(fields.get("committer", "")), number)

    def _lacking(self, oids: Sequence[str]) -> None:
        # Only the repository's own git knows where from, and none of its settings is obeyed.
        if absent := self.objects.absent(oids):
            raise self.partial(absent[0])

    def partial(self, oid: str) -> EnvironmentFault:
        """What is to be raised where an object of a commit is missing."""
        return EnvironmentFault(
            Finding(
                "git",
                "the history is a partial clone: not every file of it is there",
                Where(file=self.path),
                expected="all objects of the commits between the two releases",
                found=f"{oid} is missing",
                next=f"git -C {self.path} fetch --refetch --no-filter origin",
            )
        )


def _day(committer: str) -> str:
    """The day of a `NAME <MAIL> SECONDS ZONE` line; "" where it has none."""
    found = re.search(r" (-?\d+) ([+-])(\d\d)(\d\d)$", committer)
    if found is None:
        return ""
    away = timedelta(hours=int(found[3]), minutes=int(found[4]))
    zone = timezone(-away if found[2] == "-" else away)
    try:
        return datetime.fromtimestamp(int(found[1]), UTC).astimezone(zone).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


@contextmanager
def open_history(store: Store, path: str) -> Iterator[History]:
    """The repository at `path`, with or without a work tree.

    Raises UsageFault where there is none.
    """
    checkout = Checkout.at(path, bare=True)
    if checkout is None:
        raise UsageFault.because(
            f"--history {path} is not a git repository",
            next="git clone the upstream, then --history DIR with its folder",
        )
    with ObjectReader(store.git_dir, checkout.objects) as objects:
        yield History(path, store, checkout, objects)
