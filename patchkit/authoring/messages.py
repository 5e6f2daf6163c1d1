"""A commit's message, author and date as a patch's header."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from patchkit.authoring.headers import fit, with_fields
from patchkit.authoring.taking import Taken
from patchkit.derive.derive import TRAILER, commit_of
from patchkit.series.header import Header, tidy
from patchkit.series.mailtext import git_date, mail_date
from patchkit.series.trailers import lift_fields
from patchkit.store.commits import identity

NO_GUARD = "none"
"""What a person writes who wants a patch to have no guard any more."""
EPOCH = "0 +0000"
"""The date of a commit whose patch states none."""

FOLD = re.compile(r"(fixup|squash|amend)! (.*)", re.DOTALL)
_OURS = re.compile(rf"(?:{TRAILER}|Guard):[ \t]*(.*)", re.IGNORECASE)
_NAME = re.compile(rf"{TRAILER}:[ \t]*(\S+)[ \t]*", re.IGNORECASE)
_GUARD = re.compile(r"Guard:[ \t]*(\S+)[ \t]*", re.IGNORECASE)


@dataclass(frozen=True)
class Told:
    """What a commit says of a patch. name: of its trailer, "" without one; others: names of
    further trailers (of patches that were squashed into it). guard: None where nothing is stated,
    "" for `Guard: none`.
    """

    header: Header
    name: str
    others: tuple[str, ...] = ()
    guard: str | None = None
    said: tuple[str, ...] = ()


def is_fold(subject: str) -> bool:
    """Whether a commit is to be folded into another."""
    return FOLD.fullmatch(subject) is not None


def names_in(message: str) -> list[str]:
    """Every Patch-Name of a message, in order: of a squashed one the first is the patch's."""
    found = (_NAME.fullmatch(line) for line in message.split("\n"))
    return list(dict.fromkeys(stated[1] for stated in found if stated))


def header_of(commit: Taken, old: Header | None, patch: str, *, fresh: bool = False) -> Told:
    """The header that a commit asks for.

    old: the header that the patch has; it stays as it is where the commit says nothing else, and
    its fields stay in any case. fresh: `old` is only what `new` was told, so the commit's words
    come first.
    """
    names = names_in(commit.message)
    guards = [m[1] for line in commit.message.split("\n") if (m := _GUARD.fullmatch(line))]
    guard = (guards[-1] if guards[-1].lower() != NO_GUARD else "") if guards else None
    name, others = (names[0], tuple(names[1:])) if names else ("", ())
    if old is not None and not fresh and _unchanged(commit, old, patch):
        return Told(old, name, others, guard)
    lines = [line for line in commit.body.split("\n") if not _OURS.fullmatch(line)]
    author, date = commit.author, _mail_date(commit.date)
    if old is not None and not fresh:
        as_made = commit_of(old, patch, {})
        if identity(as_made.author) == identity(commit.author):
            author = old.author
        if _seconds(old.date) == commit.date:
            date = old.date
    told = lift_fields(Header(author, date, commit.subject, body=tidy(lines)))
    header = replace(told, fields=())
    if old is not None:
        header = replace(header, fields=old.fields)
    header = with_fields(header, told.fields)
    fitted = fit(header, subject=patch, author=author, date=date)
    return Told(fitted.header, name, others, guard, fitted.said)


def _unchanged(commit: Taken, old: Header, patch: str) -> bool:
    """Whether the commit is the one that the header gives."""
    made = commit_of(old, patch, {})
    return (
        made.message.strip("\n") == commit.message.strip("\n")
        and identity(made.author) == identity(commit.author)
        and _seconds(old.date) == commit.date
    )


def _seconds(date: str) -> str:
    """A header's date as a commit has it."""
    return git_date(date) or EPOCH


def _mail_date(date: str) -> str:
    seconds, _, zone = date.partition(" ")
    sign = -1 if zone.startswith("-") else 1
    minutes = sign * (int(zone[1:3]) * 60 + int(zone[3:5])) if len(zone) == 5 else 0
    return mail_date(int(seconds or 0), minutes)
