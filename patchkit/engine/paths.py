"""Which names a tree may hold: the one judge of paths.

Every path that a patch, a lock or an archive names is asked about here before anything is
opened. The answer is a reason in words, or None where the path is fine. No path is ever
normalised first: a name that needs it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_COMPONENT = 255
"""Bytes of one part of a path: the limit of ext4, APFS and NTFS (in their own units)."""
MAX_PATH = 2048
"""Bytes of a whole path: half of Linux's PATH_MAX, so that a base folder still fits."""
MAX_DEPTH = 100
"""Parts of a path."""

_DRIVE = re.compile(r"[A-Za-z]:")
_HFS_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that HFS+ leaves out when it compares names."""
_NTFS_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""Names that Windows takes for .git: trailing dots and spaces, streams, the short name."""
_SLASHES = re.compile(r"[/\\]")


@lru_cache(1 << 14)  # a series and its lock name the same paths many times
def unsafe(path: str) -> str | None:
    """Why `path` may not stand in a tree, in words; None where it may.

    path: relative, parts joined by "/", as text made by `model.path_text`.
    """
    if not path:
        return "it is empty"
    if "\0" in path:
        return "it holds a NUL byte"
    if "\n" in path:
        return "it holds a line feed"
    if path[0] in "/\\":
        return "it is absolute"
    if _DRIVE.match(path):
        return "it begins with a drive letter"
    parts = path.split("/")
    if "" in parts:
        return "it has an empty part"
    if "." in parts:
        return 'it has a part "."'
    reason = _bad_parts(path)
    if reason:
        return reason
    if len(parts) > MAX_DEPTH:
        return f"it is {len(parts)} folders deep, more than {MAX_DEPTH}"
    if len(path) * 4 > MAX_COMPONENT:  # else every part is short enough: skip the encoding
        size = len(path.encode("utf-8", "surrogateescape"))
        if size > MAX_PATH:
            return f"it has {size} bytes, more than {MAX_PATH}"
        longest = max(len(part.encode("utf-8", "surrogateescape")) for part in parts)
        if longest > MAX_COMPONENT:
            return f"one part has {longest} bytes, more than {MAX_COMPONENT}"
    return None


@lru_cache(1 << 12)
def raw_escape(name: str, *, bare: bool = False) -> str | None:
    """Why a name as a patch writes it can be refused before any strip level is known.

    The first part may still go by stripping, and so may leading "..", which
    `diff -ru . ../new` writes; an absolute name may have a landmark. Those are judged by
    `unsafe` after stripping. bare: the name carries no prefix (rename and copy lines), so
    nothing of it goes.
    """
    if "\0" in name:
        return "it holds a NUL byte"
    if "\n" in name:
        return "it holds a line feed"
    if bare:
        return unsafe(name)
    parts = name.split("/")
    at = 0
    while at < len(parts) and parts[at] in (".", ".."):
        at += 1
    rest = "/".join(parts[max(at, 1) :])
    if name.startswith("/"):
        return 'it has a part ".."' if ".." in _SLASHES.split(rest) else None
    return _bad_parts(rest)


def is_git_folder(part: str) -> bool:
    """Whether one part of a path is .git for some file system."""
    if _NTFS_GIT.fullmatch(part):
        return True
    return not part.isascii() and _HFS_IGNORED.sub("", part).lower() == ".git"


def case_twins(paths: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of different paths that are one path on a file system that ignores case.

    Sorted; Unicode composition is ignored too, as macOS does.
    """
    groups: dict[str, set[str]] = {}
    for path in paths:
        groups.setdefault(folded(path), set()).add(path)
    return tuple(sorted(tuple(sorted(g)) for g in groups.values() if len(g) > 1))


def folded(path: str) -> str:
    """What a file system that ignores case (and Unicode composition, as macOS does) compares."""
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def _bad_parts(path: str) -> str | None:
    """ ".." and .git, with a backslash taken as a separator too (Windows does)."""
    if ".." not in path and "git" not in path.lower() and path.isascii():
        return None
    for part in _SLASHES.split(path):
        if part == "..":
            return 'it has a part ".."'
        if is_git_folder(part):
            return f"its part {part!r} is a git folder"
    return None
