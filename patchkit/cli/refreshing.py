"""Which of its three ways `refresh` goes: a work tree's files, its commits, or patch files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchkit.errors import Refused, UsageFault

if TYPE_CHECKING:
    from patchkit.authoring.places import Place
    from patchkit.authoring.sealing import Ready
    from patchkit.authoring.session import Session
    from patchkit.authoring.standing import Standing
    from patchkit.authoring.when import When
    from patchkit.cli.out import Out


@dataclass(frozen=True)
class Wish:
    """The command line of `refresh`."""

    names: tuple[str, ...]
    pin: str | None
    tree: str | None
    from_commits: bool
    add: bool
    subject: str | None
    guard: str | None
    accept: tuple[str, ...]
    date: str | None
    check: bool
    source: str | None
    offline: bool


def refresh_all(out: Out, start: str, wish: Wish, *, quiet: bool) -> None:
    """Do it, and say what was done."""
    from patchkit.authoring.places import find_place
    from patchkit.authoring.session import session
    from patchkit.authoring.when import when
    from patchkit.cli.progress import progress
    from patchkit.cli.written import said_first

    if wish.names and wish.from_commits:
        raise UsageFault.because("PATCH and --from-commits exclude each other")
    moment = when(wish.date)
    with (
        progress(quiet=quiet) as bar,
        session(start, source=wish.source, offline=wish.offline, progress=bar) as held,
    ):
        said_first(out, held)
        place = find_place(held.project, start, wish.pin, wish.tree)
        if place is not None and place.speaks_for(held.bases.store, wish.names):
            _from_tree(out, held, place, wish, moment)
        elif wish.names:
            _from_files(out, held, wish, moment)
        else:
            raise UsageFault.because(
                "there is no work tree to refresh from",
                next="patchkit edit PATCH or patchkit new NAME first; or patchkit refresh PATCH, "
                "after an edit of its file",
            )


def _from_tree(out: Out, held: Session, place: Place, wish: Wish, moment: When) -> None:
    from patchkit.authoring.commits import refresh_commits
    from patchkit.authoring.refresh import refresh

    if wish.accept:
        raise UsageFault.because("--accept goes with PATCH, not with a work tree")
    standing = held.standing(held.project.pins.pin(place.point.pin))
    if wish.from_commits:
        if wish.add or wish.guard or wish.subject:
            raise UsageFault.because(
                "--from-commits takes files, guard and subject from the commits",
                next="git add and git commit; a line `Guard: NAME` in the message",
            )
        done = refresh_commits(standing, place.point, place.at, moment)
    else:
        done = refresh(
            standing,
            place.point,
            place.at,
            moment,
            add=wish.add,
            guard=wish.guard,
            subject=wish.subject,
        )
    _written(out, held, done.ready, wish.check)
    if not wish.check and done.patch:
        _settle(out, held, standing, place.at, done.count, done.patch)


def _settle(out: Out, held: Session, standing: Standing, at: str, count: int, patch: str) -> None:
    """Make the work tree's commits those of the refreshed series; its files are right already."""
    from patchkit.authoring.workplace import write_place

    # Where the disk or git fails the command does, although the series is written (it was said):
    # the same command again finds nothing to write and settles the work tree.
    try:
        write_place(held.standing(standing.pin), at, count, patch)
    except Refused as error:
        out.find(f.as_note() for f in error.findings)


def _from_files(out: Out, held: Session, wish: Wish, moment: When) -> None:
    from patchkit.authoring.importing import How, tidy
    from patchkit.cli.apply_loose import place

    for name, given in (("--add", wish.add), ("--subject", wish.subject)):
        if given:
            raise UsageFault.because(f"{name} goes with a work tree: patchkit edit PATCH first")
    how = How(accept=frozenset(place(a) for a in wish.accept), guard=wish.guard)
    standing = held.standing(held.pin(wish.pin))
    _written(out, held, tidy(standing, wish.names, how, moment), wish.check)


def _written(out: Out, held: Session, ready: Ready, dry: bool) -> None:
    from patchkit.authoring.form import HEADER, REFRESHED
    from patchkit.cli.written import finish
    from patchkit.rebase.heirs import heirs

    finish(out, ready, held.commit(ready, "refresh", dry=dry), dry=dry)
    edited = [row.patch for row in ready.rows if row.state in (HEADER, REFRESHED)]
    for release, names in heirs(held.project, ready.pin, edited).items():
        command = f"patchkit rebase --pin {ready.pin} --onto {release}"
        out.line(f"{release} has it as it was: {command} --again {' --again '.join(names)}")
