"""The engine's values: files, trees, patches, hunks.

Paths are `str` made from bytes by utf-8 with surrogateescape (`path_text`), so any byte
string round-trips and JSON can hold it. Contents are `bytes`, never decoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Protocol

from patchkit.engine.text import Whole
from patchkit.errors import Finding

REGULAR = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
GITLINK = 0o160000


def path_text(raw: bytes) -> str:
    """A path's bytes as text; `path_bytes` gives them back."""
    return raw.decode("utf-8", "surrogateescape")


def path_bytes(path: str) -> bytes:
    """The bytes of a path made by `path_text`."""
    return path.encode("utf-8", "surrogateescape")


def blob_id(data: bytes) -> str:
    """The git (sha1) object id of a blob, 40 hex digits."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class File:
    """One entry of a tree: git mode and content (a link's content is its target)."""

    data: bytes
    mode: int = REGULAR

    @cached_property
    def oid(self) -> str:
        """The blob's git object id."""
        return blob_id(self.data)

    def content(self) -> tuple[str, bytes]:
        """Id and bytes, for who needs both: an engine-made file is joined once for them."""
        data = self.data
        return self.known_as(data), data

    def known_as(self, data: bytes) -> str:
        """The id, hashed once. data: the file's bytes."""
        if "oid" not in self.__dict__:
            self.__dict__["oid"] = blob_id(data)
        return self.oid


class Tree(Protocol):
    """What the engine asks of a tree. Implemented in memory, by the store, by a folder."""

    def get(self, path: str) -> File | None:
        """The file at `path`; None where there is none (or where a folder stands)."""

    def is_folder(self, path: str) -> bool:
        """Whether some file stands below `path`."""

    def named(self, name: str) -> Iterable[str]:
        """Paths whose last part is `name`, sorted: for explanations and root detection."""


class MemoryTree:
    """A tree held as a dict."""

    def __init__(self, files: Mapping[str, File] | None = None) -> None:
        self.files: dict[str, File] = dict(files or {})

    def get(self, path: str) -> File | None:
        return self.files.get(path)

    def is_folder(self, path: str) -> bool:
        prefix = path + "/"
        return path == "" or any(p.startswith(prefix) for p in self.files)

    def named(self, name: str) -> list[str]:
        return sorted(p for p in self.files if p.rpartition("/")[2] == name)

    def under(self, path: str) -> list[str]:
        """Paths below the folder `path`, sorted. A tree may lack this: the engine then takes a
        folder for one that keeps some file, and refuses to put a file in its place.
        """
        prefix = path + "/"
        return sorted(p for p in self.files if p.startswith(prefix))

    def with_changes(self, changes: Mapping[str, File | None]) -> MemoryTree:
        """A new tree with `changes` made (None deletes)."""
        files = dict(self.files)
        for path, file in changes.items():
            if file is None:
                files.pop(path, None)
            else:
                files[path] = file
        return MemoryTree(files)


class Overlay:
    """A tree with changes over it; the tree below is never written."""

    def __init__(self, below: Tree, changes: Mapping[str, File | None] | None = None) -> None:
        self.below = below
        self.changes: dict[str, File | None] = dict(changes or {})

    def get(self, path: str) -> File | None:
        if path in self.changes:
            return self.changes[path]
        return self.below.get(path)

    def is_folder(self, path: str) -> bool:
        prefix = path + "/"
        if any(f is not None and p.startswith(prefix) for p, f in self.changes.items()):
            return True
        return self.below.is_folder(path)

    def under(self, path: str) -> list[str] | None:
        """As `MemoryTree.under`; None where the tree below cannot list."""
        listing = getattr(self.below, "under", None)
        below = None if listing is None else listing(path)
        if below is None:
            return None
        found = {p for p in below if self.get(p) is not None}
        prefix = path + "/"
        found |= {p for p, f in self.changes.items() if f is not None and p.startswith(prefix)}
        return sorted(found)

    def named(self, name: str) -> list[str]:
        found = {p for p in self.below.named(name) if self.get(p) is not None}
        for path, file in self.changes.items():
            if file is not None and path.rpartition("/")[2] == name:
                found.add(path)
        return sorted(found)


_TAG = {tag: bytes([tag]) for tag in b" -+"}
_NOT_ADDED = bytes(byte != b"+"[0] for byte in range(256))
_NOT_REMOVED = bytes(byte != b"-"[0] for byte in range(256))
_TURNED = bytes.maketrans(b"-+", b"+-")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk. tags: a byte for each line of its body, one of b" -+". contents: those lines
    without it; each holds its line end, and lacks it exactly where the patch has the no-newline
    marker. (Side by side, not in pairs: a pair takes more memory than most lines do; so do both
    sides, which are made when asked for.)

    old_start/new_start are as stated (1-based; 0 for an empty side). patch_line is the 1-based
    line of its @@ in the patch file. heading is what follows the second @@, without line end.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    tags: bytes
    contents: tuple[bytes, ...]
    heading: bytes = b""
    patch_line: int = 0

    @property
    def old(self) -> tuple[bytes, ...]:
        """The pre-image: context and removed lines."""
        return self._side(b"+", _NOT_ADDED)

    @property
    def new(self) -> tuple[bytes, ...]:
        """The post-image: context and added lines."""
        return self._side(b"-", _NOT_REMOVED)

    def _side(self, other: bytes, own: bytes) -> tuple[bytes, ...]:
        """The contents whose tag is not `other`; `own` maps every other tag to a true byte."""
        if other not in self.tags:
            return self.contents
        return tuple(compress(self.contents, self.tags.translate(own)))

    @property
    def lines(self) -> tuple[tuple[bytes, bytes], ...]:
        """(tag, content) of each line. Made when asked for: not for what is done to every hunk."""
        return tuple(zip(map(_TAG.__getitem__, self.tags), self.contents, strict=True))

    @property
    def net(self) -> int:
        """Lines added less lines removed."""
        return self.new_count - self.old_count

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        return Hunk(
            self.new_start,
            self.new_count,
            self.old_start,
            self.old_count,
            self.tags.translate(_TURNED),
            self.contents,
            self.heading,
            self.patch_line,
        )


@dataclass(frozen=True)
class Section:
    """What one patch does to one file.

    kind: "modify", "create", "delete", "rename" or "copy".
    old_path/new_path: names as the patch has them, unquoted, before any strip level; None stands
    for /dev/null. git: whether a `diff --git` header gave them (or the extended headers did).
    Renames and copies carry names *without* a/ b/ prefix in their own headers: `bare_names` is
    True where old_path/new_path came from such lines and no strip applies to one component.
    old_mode/new_mode: git modes where stated. old_id/new_id: index line ids as stated (may be
    abbreviated) or "". binary: "" | "literal" | "delta" | "no-content".
    patch_line: first line, 1-based. patch_lines: how many the section has. whole: the patch file.
    """

    kind: str
    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    git: bool = False
    bare_names: bool = False
    old_mode: int | None = None
    new_mode: int | None = None
    old_id: str = ""
    new_id: str = ""
    binary: str = ""
    patch_line: int = 0
    patch_lines: int = 0
    whole: Whole | None = field(default=None, repr=False, compare=False)

    @property
    def raw(self) -> bytes:
        """The section's own bytes."""
        first = self.patch_line - 1
        return self.whole.between(first, first + self.patch_lines) if self.whole else b""

    @property
    def path(self) -> str:
        """The name to show: the new side's, else the old one's."""
        return self.new_path or self.old_path or "?"


@dataclass(frozen=True)
class Patch:
    """One patch file, parsed. `header` is every byte before the first section."""

    name: str
    sections: tuple[Section, ...]
    header: bytes = b""
    data: bytes = b""
    notes: tuple[Finding, ...] = ()
    """What was accepted though odd (surplus context line, heredoc wrapper, …): notes."""

    @cached_property
    def sha256(self) -> str:
        """Digest of the file's bytes, 64 hex digits."""
        return hashlib.sha256(self.data).hexdigest()

    def hunks(self) -> Iterator[tuple[Section, int, Hunk]]:
        """Every hunk with its section and its 1-based number in it."""
        for section in self.sections:
            for number, hunk in enumerate(section.hunks, 1):
                yield section, number, hunk
