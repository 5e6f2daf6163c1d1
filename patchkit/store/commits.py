"""Commits that come out the same on every machine and day: one for each patch.

The committer is the author and both dates are the patch's own, so that nothing but the series
decides the id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache

from patchkit.engine.content import Text, TextFile
from patchkit.engine.model import GITLINK, SYMLINK, File
from patchkit.store.delta import between, replaced
from patchkit.store.folders import Editor
from patchkit.store.pack import Pack

TOOL = "patchkit <patchkit@invalid>"
"""Author of commits that no patch names an author for; `invalid` is a reserved domain."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RFC2822 = re.compile(
    r"(?:[A-Za-z]{3},?\s+)?(\d{1,2})\s+([A-Za-z]{3})[a-z]*\s+(\d{4})\s+"
    r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([+-]\d{4}|GMT|UTC?|Z)?(?:\s*\(.*\))?"
)
_RAW = re.compile(r"@?(\d{1,12})\s+([+-]\d{4})")
_IDENT = re.compile(r"\s*(.*?)\s*<([^<>\n]*)>\s*")
_DEPTH = 30
"""Longest chain of deltas between versions of one file; reading follows all of them."""


@dataclass(frozen=True)
class Commit:
    """One commit to make: changes over the tree before it (None deletes a path).

    author: `Name <mail>`. date: RFC 2822 as a mail header has it, or git's `@seconds +zzzz`; empty
    stands for the start of the epoch. message: without trailing newline.
    """

    changes: Mapping[str, File | None]
    author: str = TOOL
    date: str = ""
    message: str = ""


@dataclass(frozen=True)
class Chain:
    """Ids (40 hex digits) of a chain's commits and of their trees, the base commit first."""

    commits: tuple[str, ...]
    trees: tuple[str, ...]

    @property
    def commit(self) -> str:
        """The last commit."""
        return self.commits[-1]

    @property
    def tree(self) -> str:
        """The last commit's tree."""
        return self.trees[-1]


def git_date(date: str) -> str:
    """A date as git objects hold it: seconds since the epoch and the offset from UTC.

    Raises ValueError where it is not an RFC 2822 date or `@seconds +zzzz`.
    """
    text = date.strip()
    if not text:
        return "0 +0000"
    raw = _RAW.fullmatch(text)
    if raw:
        return f"{int(raw[1])} {raw[2]}"
    found = _RFC2822.fullmatch(text)
    if not found or found[2].title() not in _MONTHS:
        raise ValueError(f"not an RFC 2822 date: {date!r}")
    day, _, year, hour, minute, second, zone = found.groups()
    month = _MONTHS.index(found[2].title()) + 1
    zone = zone if zone and zone[0] in "+-" else "+0000"
    moment = datetime(
        int(year), month, int(day), int(hour), int(minute), int(second or 0), tzinfo=timezone.utc
    )
    away = (int(zone[1:3]) * 60 + int(zone[3:5])) * (1 if zone[0] == "+" else -1)
    seconds = int(moment.timestamp()) - away * 60
    if seconds < 0:
        raise ValueError(f"a date before 1970: {date!r}")
    return f"{seconds} {zone}"


@lru_cache
def identity(author: str) -> str:
    """`Name <mail>` as git holds it: no line break, no angle bracket inside a part."""
    found = _IDENT.fullmatch(author.replace("\n", " ").replace("\0", ""))
    name, mail = (found[1], found[2]) if found else (author, author if "@" in author else "")
    name = re.sub(r"[<>\n\0]", "", name).strip(" .,:;\"'\\") or mail or "unknown"
    return f"{name} <{mail.strip()}>"


def commit_bytes(tree: str, parent: str | None, commit: Commit) -> bytes:
    """The commit object."""
    who = f"{identity(commit.author)} {git_date(commit.date)}"
    lines = [f"tree {tree}"]
    if parent:
        lines.append(f"parent {parent}")
    lines += [f"author {who}", f"committer {who}", "", commit.message.rstrip("\n"), ""]
    return "\n".join(lines).replace("\0", "").encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class _Version:
    """A version of a file in the pack. text: its lines, where the engine made it. deltas: between
    it and a whole one."""

    oid: bytes
    data: bytes
    text: Text | None
    deltas: int


@dataclass
class ChainWriter:
    """Writes commits one after the other into a pack.

    Blobs are told as deltas against the version before them in the same pack. A version is held
    until the last step that changes its path: a series that touches thousands of files once each
    would hold all their bytes else.
    """

    pack: Pack
    editor: Editor
    _versions: dict[str, _Version] = field(default_factory=dict)

    def blob(self, path: str, file: File) -> None:
        """Write one version of a file, unless the pack has it."""
        if file.mode == GITLINK:
            return
        before = self._versions.get(path)
        if before is not None and (before.deltas >= _DEPTH or file.mode == SYMLINK):
            before = None
        delta = None
        text = file.text if isinstance(file, TextFile) else None
        if before is not None and isinstance(file, TextFile) and file.follows(before.text):
            name, data, spans = file.over(before.data)
            delta = replaced(len(before.data), spans)
        else:
            name, data = file.content()
            if before is not None:
                delta = between(before.data, data)
        oid = bytes.fromhex(name)
        deltas = 0
        if oid in self.pack:
            pass
        elif delta is None or before is None:
            self.pack.add("blob", data, oid)
        else:
            self.pack.add_delta(oid, before.oid, delta)
            deltas = before.deltas + 1
        self._versions[path] = _Version(oid, data, text, deltas)

    def tree(self, changes: Mapping[str, File | None], last: Iterable[str] = ()) -> str:
        """Make `changes` over the last tree; give the new tree's id. last: paths that no later
        step changes."""
        for path, file in changes.items():
            if file is not None:
                self.blob(path, file)
        for path in last:
            self._versions.pop(path, None)
        return self.editor.apply(changes)

    def trees(self, steps: Sequence[Mapping[str, File | None]]) -> Iterator[str]:
        """Make each step's changes over the tree of the one before; give each tree's id."""
        until = {path: number for number, changes in enumerate(steps) for path in changes}
        for number, changes in enumerate(steps):
            yield self.tree(changes, [path for path in changes if until[path] == number])

    def chain(self, steps: Sequence[Commit], base: Commit | str) -> Chain:
        """A commit for each step.

        base: the commit to make of the editor's tree first, or the id of the commit to go on from.
        """
        if isinstance(base, str):
            parent = base
        else:
            parent = self._commit(self.tree(base.changes), None, base)
        commits, trees = [parent], [self.editor.oid]
        made = self.trees([step.changes for step in steps])
        for step, tree in zip(steps, made, strict=True):
            parent = self._commit(tree, parent, step)
            commits.append(parent)
            trees.append(tree)
        return Chain(tuple(commits), tuple(trees))

    def _commit(self, tree: str, parent: str | None, commit: Commit) -> str:
        return self.pack.add("commit", commit_bytes(tree, parent, commit)).hex()
