"""What `import` takes in that is no patch file: a pull request, commits, an overlay, a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchkit.errors import EnvironmentFault, Finding, UsageFault
from patchkit.series.naming import spelled

if TYPE_CHECKING:
    from patchkit.authoring.importing import How
    from patchkit.authoring.sealing import Ready
    from patchkit.authoring.session import Session
    from patchkit.authoring.standing import Standing
    from patchkit.authoring.when import When
    from patchkit.bring.carried import Piece
    from patchkit.series.pins import Pin
    from patchkit.store.tree import StoreTree


@dataclass(frozen=True)
class Elsewhere:
    """The options of `import` for what is no patch file."""

    pull: str | None = None
    commits: str | None = None
    place: str | None = None
    overlay: str | None = None
    run: str | None = None
    no_run: bool = False
    allow_no_op: bool = False
    exclude: tuple[str, ...] = ()

    def checked(self, paths: Sequence[str]) -> bool:
        """Whether one of them is asked for. Raises UsageFault where they do not go together."""
        given = [
            option
            for option, value in (
                ("FILE", list(paths)),
                ("--pr", self.pull),
                ("--commits", self.commits),
                ("--overlay", self.overlay),
                ("--run", self.run),
            )
            if value
        ]
        if not given:
            raise UsageFault.because(
                "a FILE or a DIR is needed, or --pr, --commits, --overlay or --run",
                next="patchkit import fix.patch",
            )
        if len(given) > 1:
            raise UsageFault.because(f"{' and '.join(given)} exclude each other")
        if self.commits and not self.place:
            raise UsageFault.because(
                "--commits and --from go together", next="--commits A..B --from REPO"
            )
        if self.place and not (self.commits or self.pull):
            raise UsageFault.because(
                "--from goes with --commits and --pr", next="--commits A..B --from REPO"
            )
        if self.allow_no_op and not self.run:
            raise UsageFault.because("--allow-no-op goes with --run")
        if self.run and self.no_run:
            raise UsageFault.because("--run runs a command; --no-run forbids that")
        return given != ["FILE"]


def bring_elsewhere(
    held: Session,
    pin: Pin,
    asked: Elsewhere,
    how: How,
    moment: When,
    name: str | None,
    after: str | None,
    first: bool,
) -> Ready:
    """The series with what came."""
    from patchkit.authoring.importing import bring
    from patchkit.authoring.incoming import Arrived
    from patchkit.bring.carried import carried

    standing = held.standing(pin).whole()
    count = len(standing.names)
    if name is not None and how.replace and name_in(standing, name):
        count = standing.index(name)  # in the place of the one that it replaces
    elif after is not None:
        count = standing.index(after) + 1
    elif first:
        count = 0
    tree = standing.store.tree(standing.trees[count], standing.base.fetch)
    pieces, notes = _pieces(held, standing, tree, asked, how, name)
    arrived = Arrived(tuple(carried(tree, pieces)), None, notes)
    plain = replace(how, strip=None, directory=None)  # names are whole by now
    return bring(standing, arrived, plain, moment, after=after, first=first)


def name_in(standing: Standing, name: str) -> bool:
    """Whether the series has a patch of that name, with or without .patch."""
    return spelled(standing.names, name) is not None


def _pieces(
    held: Session,
    standing: Standing,
    tree: StoreTree,
    asked: Elsewhere,
    how: How,
    name: str | None,
) -> tuple[list[Piece], tuple[Finding, ...]]:
    from patchkit.bring.fork import forked
    from patchkit.bring.overlay import overlaid
    from patchkit.bring.pull import by_hand, pull_of, pulled
    from patchkit.bring.script import script_of, scripted
    from patchkit.upstreams import known

    upstream = held.project.pins.upstream_of(standing.pin)
    if asked.pull is not None:
        pull = pull_of(asked.pull, upstream, asked.place)
        try:
            if held.bases.offline and not pull.clone:
                raise EnvironmentFault(_offline(pull.page))
            return [pulled(standing.store, upstream, pull, asked.exclude, name)], ()
        except EnvironmentFault as fault:
            said = (by_hand(f, pull, upstream, asked.exclude, name) for f in fault.findings)
            raise EnvironmentFault(*said) from fault
    if asked.commits is not None and asked.place is not None:
        if held.bases.offline and "://" in asked.place:
            raise EnvironmentFault(_offline(asked.place))
        return forked(
            standing.store,
            upstream,
            asked.commits,
            asked.place,
            asked.exclude,
            () if how.replace else standing.names,
            name,
        )
    if asked.overlay is not None:
        facts = known(upstream)
        package = "/".join(part for part in (facts.root, facts.package) if part)
        piece, notes = overlaid(
            tree,
            asked.overlay,
            package,
            asked.exclude,
            name,
            strip=how.strip,
            directory=how.directory,
        )
        return [piece], notes
    piece, notes = scripted(
        standing.store,
        tree,
        script_of(asked.run or ""),
        asked.exclude,
        name,
        allow_no_op=asked.allow_no_op,
    )
    return [piece], notes


def _offline(where: str) -> Finding:
    return Finding(
        "network",
        f"{where} is asked for, and --offline forbids asking",
        expected="a network",
        found="--offline",
        next="leave out --offline",
    )
