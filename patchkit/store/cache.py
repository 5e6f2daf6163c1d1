"""The user's cache folder: where it is, what it holds, and how it is emptied.

store-1.git/   the objects     results/    results by key    (another number: another format)
downloads/     verified archives           in-use, *.lock
prove/, environments/, build/               made by those capabilities
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.growing import remove_file, remove_folder
from patchkit.files.shared import nobody_uses

VARIABLE = "PATCHKIT_CACHE"
STORE = "store-1.git"
RESULTS = "results"
DOWNLOADS = "downloads"
REMOTES = "remotes"
IN_USE = "in-use"


@dataclass(frozen=True)
class Usage:
    """One part of the cache: its name, what it is for, its files and bytes on disk."""

    name: str
    what: str
    files: int
    size: int


_PARTS = (
    (STORE, "source trees and patched trees"),
    (DOWNLOADS, "verified downloads"),
    (REMOTES, "what is known of git servers"),
    (RESULTS, "results of earlier runs"),
    ("prove", "trees and bytecode of proofs"),
    ("environments", "interpreters of proofs"),
    ("build", "environments and fetched sources of builds"),
)


def cache_root() -> str:
    """The cache folder: $PATCHKIT_CACHE, else the system's cache folder for patchkit.

    Raises EnvironmentFault(disk) where a file stands there, or where a folder above should.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return _free_of_files(os.path.abspath(os.path.expanduser(named)))
    from platformdirs import user_cache_dir

    return _free_of_files(user_cache_dir("patchkit"))


def _free_of_files(root: str) -> str:
    at = root
    while not os.path.lexists(at) and os.path.dirname(at) != at:
        at = os.path.dirname(at)
    if os.path.isdir(at):
        return root
    raise EnvironmentFault(
        Finding(
            "disk",
            f"the cache cannot be in {root}: {at} is no folder",
            Where(file=at),
            expected="a folder, or nothing",
            found="a link to nothing" if os.path.islink(at) else "a file",
            next=f"{VARIABLE}=DIR with a folder, or without that variable",
        )
    )


_OTHER_STORE = re.compile(r"store-\d+\.git")
_AROUND = re.compile(r"in-use|ci|.*\.lock|.*\.pk-gone|\..*|lost\+found|CACHEDIR\.TAG")
"""What else may stand in the folder, without anybody having put his own files there."""


def _parts(at: str) -> list[tuple[str, str]]:
    """Name and meaning of each part, those of other versions of patchkit at the end."""
    try:
        names = sorted(os.listdir(at))
    except OSError:
        names = []
    others = [name for name in names if _OTHER_STORE.fullmatch(name) and name != STORE]
    return [*_PARTS, *((name, "trees of another version of patchkit") for name in others)]


def usage(root: str | None = None) -> list[Usage]:
    """What each part of the cache takes."""
    at = root or cache_root()
    return [_measure(os.path.join(at, name), name, what) for name, what in _parts(at)]


def clear(root: str | None = None) -> list[Usage]:
    """Empty the cache; give what it held.

    Only folders that patchkit itself makes are removed. Raises EnvironmentFault(disk) while
    another patchkit uses the cache, and where somebody keeps other things in the folder, too: a
    folder named build may be his.
    """
    at = root or cache_root()
    held = usage(at)
    if not os.path.isdir(at):
        return held
    parts = [name for name, _ in _parts(at)]
    _refuse_foreign(at, parts)
    mark = nobody_uses(os.path.join(at, IN_USE))
    if mark is None:
        raise EnvironmentFault(
            Finding(
                "disk",
                "another patchkit is using the cache",
                expected="no other patchkit running",
                found=f"{os.path.join(at, IN_USE)} held",
                next="wait until it is done, then patchkit cache --clear",
            )
        )
    try:
        for name in parts:
            path = os.path.join(at, name)
            if os.path.islink(path) or os.path.isfile(path):
                remove_file(path)
            else:
                remove_folder(path)
    finally:
        mark.release()
    return held


def _refuse_foreign(at: str, parts: list[str]) -> None:
    names = sorted(os.listdir(at))
    foreign = [name for name in names if name not in parts and not _AROUND.fullmatch(name)]
    if foreign and len(foreign) < len(names):
        raise EnvironmentFault(
            Finding(
                "disk",
                "the cache's folder holds more than the cache: nothing was removed",
                Where(file=at),
                expected="nothing but what patchkit keeps there",
                found=", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else ""),
                next=f"a folder of its own: {VARIABLE}=DIR; in this one remove by hand what is "
                "patchkit's",
            )
        )


def _measure(at: str, name: str, what: str) -> Usage:
    files = size = 0
    for folder, _, names in os.walk(at):
        for each in names:
            try:
                found = os.lstat(os.path.join(folder, each))
            except FileNotFoundError:
                continue
            if stat.S_ISREG(found.st_mode):
                files += 1
                size += found.st_blocks * 512
    return Usage(name, what, files, size)
