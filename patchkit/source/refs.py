"""HEAD, branches and tags of somebody's repository, read from its files and nothing else of it.

No configuration is read, no git runs, no link is followed and no special file is waited for: a
repository of a stranger may hold any of these. What cannot be read so is not there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.engine.model import SYMLINK
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.files.root import Root

_ID = re.compile(r"[0-9a-f]{40}")
_SHORT = 4096
"""Bytes of a file that holds one ref or one path."""
_PACKED = 64 << 20
_DEEP = 5
"""Refs that lead to each other, as in git."""


@dataclass(frozen=True)
class Refs:
    """The refs of one repository. folders: its own git folder, then the one that it shares with
    others: a linked work tree has a HEAD of its own, and the tags of all."""

    folders: tuple[str, ...]

    @classmethod
    def at(cls, path: str, *, bare: bool = False) -> Refs | None:
        """Of the repository whose top is `path`; None where there is none that can be read so.

        bare: it may also be a repository without a work tree.
        """
        own = os.path.join(path, ".git")
        kind = _kind(own)
        if kind == stat.S_IFREG:
            own = os.path.join(path, _after("gitdir: ", _read(own)))
        elif kind != stat.S_IFDIR:
            if not bare:
                return None
            own = path
        shared = os.path.join(own, _after("", _text(own, "commondir", _SHORT)) or ".")
        if not _text(own, "HEAD", _SHORT) or _kind(os.path.join(shared, "objects")) != stat.S_IFDIR:
            return None
        return cls(tuple(dict.fromkeys(os.path.abspath(at) for at in (own, shared))))

    @property
    def objects(self) -> str:
        """The object folder."""
        return os.path.join(self.folders[-1], "objects")

    def require_no_links(self) -> None:
        """Raise Refused(symlink-in-path) where the object folder holds a link: git would read
        what it leads to."""
        for folder, _, _ in os.walk(self.objects):
            with os.scandir(folder) as rows:
                link = next((row.path for row in rows if row.is_symlink()), None)
            if link is not None:
                raise Refused(
                    Finding(
                        "symlink-in-path",
                        "the repository's object folder holds a symbolic link, and git would "
                        "read what it leads to",
                        Where(file=link),
                        expected="each object in the folder itself",
                        found="a symbolic link",
                        next="name a clone of it that holds none",
                    )
                )

    def id_of(self, ref: str) -> str:
        """The id that HEAD or `refs/…` leads to; "" where it leads nowhere."""
        packed = self._packed()
        for _ in range(_DEEP):
            text = self._file(ref) or packed.get(ref, "")
            if not text.startswith("ref: "):
                return text if _ID.fullmatch(text) else ""
            ref = text.removeprefix("ref: ").strip()
        return ""

    def tags(self) -> dict[str, str]:
        """Tag -> the id that it names: a commit's, or an annotated tag's. Sorted."""
        lead = "refs/tags/"
        found = {r: oid for r, oid in self._packed().items() if r.startswith(lead)}
        for folder in reversed(self.folders):
            for ref in _below(folder, lead):
                if _ID.fullmatch(text := self._file(ref)):
                    found[ref] = text
        return {ref.removeprefix(lead): oid for ref, oid in sorted(found.items())}

    def _file(self, ref: str) -> str:
        if ref != "HEAD" and (not ref.startswith("refs/") or unsafe(ref)):
            return ""
        return next((text for at in self.folders if (text := _text(at, ref, _SHORT))), "")

    def _packed(self) -> dict[str, str]:
        rows = _text(self.folders[-1], "packed-refs", _PACKED).splitlines()
        parts = (row.partition(" ") for row in rows)
        return {ref: oid for oid, _, ref in parts if _ID.fullmatch(oid)}


def _below(folder: str, lead: str) -> Iterator[str]:
    """Names of the files below `folder`/`lead`, links left out."""
    root = Root(folder)
    try:
        if root.is_folder(lead.rstrip("/")):
            yield from root.walk(lead.rstrip("/"))
    except (PatchkitError, OSError):
        return


def _text(folder: str, name: str, limit: int) -> str:
    """The text of a regular file below `folder`, "" for all else."""
    try:
        file = Root(folder).get(name, limit)
    except (PatchkitError, OSError):
        return ""
    plain = file is not None and file.mode != SYMLINK
    return file.data.decode("utf-8", "surrogateescape").strip() if file and plain else ""


def _read(at: str) -> str:
    try:
        return read_file(at, _SHORT).decode("utf-8", "surrogateescape").strip()
    except PatchkitError:
        return ""


def _after(lead: str, text: str) -> str:
    """A path of one line that stands behind `lead`; "" for all else."""
    fits = text.startswith(lead) and not set(text) & {"\0", "\n"}
    return text.removeprefix(lead) if fits else ""


def _kind(at: str) -> int:
    try:
        return stat.S_IFMT(os.lstat(at).st_mode)
    except (OSError, ValueError):
        return 0
