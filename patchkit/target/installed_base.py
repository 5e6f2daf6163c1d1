"""What an installed package is now, and what its installer had put there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from patchkit.engine.model import SYMLINK, File, blob_id, path_text
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.files.atomic import read_file
from patchkit.files.root import Root
from patchkit.series.lockfile import Blob, LockedPin
from patchkit.target.dist_info import JOURNAL, STATE, Dist, on_disk, pending_journal, release
from patchkit.target.installed_state import State, load_state
from patchkit.target.installed_words import Words
from patchkit.target.record_csv import ALGORITHMS, Row, digest_of, holds
from patchkit.upstreams.setuptools_files import commit_in

MAX_STATE = 64 << 20
SHOWN = 20
"""Paths that one finding names before it counts the rest."""
LIBRARIES = (".so", ".dylib", ".dll", ".pyd", ".a")
"""Compared by size alone: hundreds of megabytes that no patch touches."""
_LARGE = 16 << 20


def read_state(dist: Dist) -> State | None:
    """The recorded state; None where the package is not patched. Raises Refused(journal)."""
    if not os.path.lexists(dist.at(STATE)):
        return None
    return load_state(
        read_file(dist.at(STATE), MAX_STATE),
        os.path.join(dist.site, dist.path(STATE)),
        dist.reinstall,
    )


def journal_finding(site: str, words: Words) -> Finding | None:
    """What to say where an interrupted command has left its journal, and nothing may be written."""
    dist = pending_journal(site)
    if dist is None:
        return None
    return Finding(
        "journal",
        f"a command that changed {dist.name} was interrupted: some files may be new, some old",
        Where(file=dist.at(JOURNAL)),
        expected="no journal",
        found=dist.at(JOURNAL),
        next=f"{words.apply} or {words.revert}: either undoes it first",
    )


def identity(dist: Dist, pin: LockedPin, version: str, package: str) -> list[Finding]:
    """pin-mismatch findings: the release and the commit that the package states, against the pin.

    version: the release that is wanted, "" where it is not known.
    """
    found = []
    again = dist.install(version)
    if version and release(dist.version) != release(version):
        found.append(
            Finding(
                "pin-mismatch",
                f"another release of {dist.name} is installed than pin {pin.name} states",
                Where(file=os.path.join(dist.site, dist.folder)),
                expected=f"version {version}",
                found=f"version {dist.version}",
                next=f"take the pin of {dist.version}, or: {again}",
            )
        )
    stated = _commit(dist, package)
    own = pin.commit or pin.commit_prefix
    if stated and own and not (own.startswith(stated) or stated.startswith(own)):
        found.append(
            Finding(
                "pin-mismatch",
                f"{dist.name} was built from another commit than pin {pin.name} states",
                Where(file=os.path.join(dist.site, package, "_version.py")),
                expected=f"commit {own}",
                found=f"commit {stated}",
                next=again if version else f"install the release of pin {pin.name}",
            )
        )
    return found


def _commit(dist: Dist, package: str) -> str:
    """The commit that setuptools-scm's version file names, where the package has one."""
    name = f"{package.replace('.', '/')}/_version.py" if package else ""
    file = Root(dist.site).get(name) if name else None
    return (commit_in((file,)) or "") if file is not None else ""


def edited_since(
    dist: Dist, state: State, root: Root, words: Words, again: str = ""
) -> list[Finding]:
    """foreign-edit findings: recorded files, or their rows in RECORD, not as they were left; and
    symlink-in-path, where one is a link now. again: the command to run after the way back."""
    found = []
    links = []
    for path in sorted(state.chain.paths):
        expected, inner = state.chain.after(path), state.site_path(path)
        file = root.get(inner)
        if file is not None and file.mode == SYMLINK:
            links.append(inner)
        elif blob_oid(expected) != (file.oid if file is not None else None):
            found.append(_edited(inner, blob_oid(expected), file))
        elif file is not None:
            wrong = record_disagrees(dist, inner, file)
            found += [wrong] if wrong is not None else []
    found = [replace(one, next=words.way_back(dist, state, again)) for one in found]
    return [linked(dist, links), *found] if links else found


def record_disagrees(dist: Dist, path: str, file: File, row: Row | None = None) -> Finding | None:
    """A foreign-edit finding where the file's row in RECORD says another digest. row: another
    row to compare with."""
    row = row or dist.record.by_path.get(path)
    if row is None or holds(row, file.data) is not False:
        return None
    algorithm = row.digest.partition("=")[0]
    return Finding(
        "foreign-edit",
        f"{show_path(path)} was edited by somebody else: its RECORD row says another digest",
        Where(file=path),
        expected=f"{row.digest} ({row.size} bytes), as in RECORD",
        found=f"{digest_of(file.data, algorithm)} ({len(file.data)} bytes)",
        next=f"keep a copy of your change (or make it a patch of its own), then: {dist.reinstall}",
    )


def gone(dist: Dist, path: str, expected: str) -> Finding:
    """A foreign-edit finding: RECORD lists a file, and it is not there."""
    return Finding(
        "foreign-edit",
        f"{show_path(path)} is gone, though RECORD lists it",
        Where(file=path),
        expected=expected,
        found="no file",
        next=dist.reinstall,
    )


def lock_disagrees(
    dist: Dist, path: str, expected: Blob | None, file: File | None, pin: str
) -> Finding:
    """A foreign-edit finding: RECORD holds, or the file is gone, and the lock knows another."""
    if file is None and path in dist.record.by_path:
        return gone(dist, path, blob_oid(expected) or "no file")
    return Finding(
        "foreign-edit",
        f"{show_path(path)} is not the file of {pin}, though RECORD agrees with it: "
        + (
            f"it was patched, and the record of that ({STATE}) is lost"
            if dist.record_lost
            else "the package was built from other sources"
        ),
        Where(file=path),
        expected=blob_oid(expected) or "no file",
        found=file.oid if file is not None else "no file",
        next=dist.reinstall,
    )


def others_edited(dist: Dist, root: Root, touched: Iterable[str], *, read: bool) -> list[Finding]:
    """A note on files that no patch touches and that are not as RECORD says.

    read: compare digests of all but native libraries; else sizes only, which costs no reading.
    """
    skip = set(touched)
    tops = dist.tops
    wrong = []
    for row in dist.record.rows:
        path = row.path
        if path in skip or not row.digest or path.partition("/")[0] not in tops:
            continue
        if _differs(root, row, read):
            wrong.append(path)
    if not wrong:
        return []
    more = f", and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return [
        Finding(
            "foreign-edit",
            f"{len(wrong)} file(s) of {dist.name} that no patch touches are not as RECORD says",
            Where(file=wrong[0]),
            expected="every file as it was installed",
            found=", ".join(show_path(path) for path in wrong[:SHOWN]) + more,
            next=f"{dist.reinstall}, or put the edits into a patch",
            note=True,
        )
    ]


def _differs(root: Root, row: Row, read: bool) -> bool:
    at = on_disk(root.at, row.path)
    try:
        found = os.stat(at)
        size = found.st_size
        if not stat.S_ISREG(found.st_mode) or (row.size and str(size) != row.size):
            return True
        if not read or size > _LARGE or row.path.endswith(LIBRARIES):
            return False
        if row.digest.partition("=")[0] not in ALGORITHMS:
            return False
        with open(at, "rb") as stream:
            return holds(row, stream.read()) is False
    except OSError:
        return True


def lookup_of(root: Root, site_path: Callable[[str], str]) -> Callable[[str], str | None]:
    """For `series.state`: the blob id at a tree path, modes left aside."""

    def lookup(path: str) -> str | None:
        file = root.get(site_path(path))
        return blob_id(file.data) if file is not None else None

    return lookup


def links_in(dist: Dist, paths: Iterable[str]) -> list[str]:
    """Those of the site paths that are symbolic links."""
    return [path for path in paths if os.path.islink(on_disk(dist.site, path))]


def linked(dist: Dist, paths: Sequence[str]) -> Finding:
    """A symlink-in-path finding for files that lead out of the package."""
    first, count = show_path(paths[0]), len(paths)
    leads = os.fsencode(os.readlink(on_disk(dist.site, paths[0])))
    more = f", and {count - SHOWN} more" if count > SHOWN else ""
    return Finding(
        "symlink-in-path",
        f"{first} is a symbolic link, which is never written through"
        if count == 1
        else f"{count} files are symbolic links, which are never written through",
        Where(file=paths[0]),
        expected="files",
        found=f"a link to {show_path(path_text(leads))}"
        if count == 1
        else "links: " + ", ".join(show_path(path) for path in paths[:SHOWN]) + more,
        next=f"install {dist.name} again with files (of uv: --link-mode=copy): {dist.reinstall}",
    )


def _edited(path: str, expected: str | None, file: File | None) -> Finding:
    return Finding(
        "foreign-edit",
        f"{show_path(path)} is not as patchkit left it",
        Where(file=path),
        expected=expected or "no file",
        found=file.oid if file is not None else "no file",
    )


def blob_oid(blob: Blob | None) -> str | None:
    """The id of a file that may not be there."""
    return blob.oid if blob is not None else None
