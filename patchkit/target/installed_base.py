"""What an installed package is now, and what its installer had put there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from patchkit.engine.model import File, blob_id
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.files.root import Root
from patchkit.series.lockfile import Blob, LockedPin
from patchkit.target.dist_info import STATE, Dist, release
from patchkit.target.installed_replay import take_back
from patchkit.target.installed_state import State, load_state
from patchkit.target.installed_tree import InstalledTree
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
        read_file(dist.at(STATE), MAX_STATE), os.path.join(dist.site, dist.path(STATE))
    )


def identity(dist: Dist, pin: LockedPin, version: str, package: str) -> list[Finding]:
    """pin-mismatch findings: the release and the commit that the package states, against the pin.

    version: the release that is wanted, "" where it is not known.
    """
    found = []
    again = f"python -m pip install --force-reinstall --no-deps {dist.name}=={version}"
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


def edited_since(dist: Dist, state: State, root: Root) -> list[Finding]:
    """foreign-edit findings: recorded files, or their rows in RECORD, not as they were left."""
    found = []
    rows = dist.record.by_path
    for path in sorted(state.chain.paths):
        expected, inner = state.chain.after(path), state.site_path(path)
        file = root.get(inner)
        if _oid(expected) != (file.oid if file is not None else None):
            found.append(_edited(inner, _oid(expected), file))
        elif file is not None:
            wrong = record_disagrees(rows.get(inner), inner, file)
            found += [wrong] if wrong is not None else []
    return found


def record_disagrees(row: Row | None, path: str, file: File) -> Finding | None:
    """A foreign-edit finding where the file's row in RECORD says another digest."""
    if row is None or holds(row, file.data) is not False:
        return None
    algorithm = row.digest.partition("=")[0]
    return Finding(
        "foreign-edit",
        f"{show_path(path)} was edited by somebody else: its RECORD row says another digest",
        Where(file=path),
        expected=f"{row.digest} ({row.size} bytes), as in RECORD",
        found=f"{digest_of(file.data, algorithm)} ({len(file.data)} bytes)",
        next="put your change aside (or into a patch of its own) and install the package again",
    )


def lock_disagrees(path: str, expected: Blob | None, file: File | None, pin: str) -> Finding:
    """A foreign-edit finding: RECORD holds, and the lock knows another base file."""
    return Finding(
        "foreign-edit",
        f"{show_path(path)} is not the file of {pin}, though RECORD agrees with it: "
        "the package was built from other sources",
        Where(file=path),
        expected=_oid(expected) or "no file",
        found=file.oid if file is not None else "no file",
        next=f"install the wheel of {pin}",
    )


def base_files(tree: InstalledTree, state: State) -> dict[str, File | None]:
    """Tree path -> the file before patching, for every path of the state; ids as in its lock.

    Raises Refused(verify-failed, …) where the record does not give them back.
    """
    changes: Mapping[str, File | None] = state.kept
    if not changes:
        changes, wrong = take_back(tree, state.patches)
        if wrong:
            raise Refused(*wrong)
    out: dict[str, File | None] = {}
    for path in sorted(state.chain.paths):
        before = state.chain.before(path)
        file = changes[path] if path in changes else tree.get(path)
        if _oid(before) != (file.oid if file is not None else None):
            raise Refused(
                Finding(
                    "verify-failed",
                    f"taking the patches out of {show_path(path)} does not give the file back",
                    Where(file=path),
                    expected=_oid(before) or "no file",
                    found=file.oid if file is not None else "no file",
                    next="install the package again",
                )
            )
        out[path] = File(file.data, before.mode) if file is not None and before else None
    return out


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
            next="install the package again, or put the edits into a patch",
            note=True,
        )
    ]


def _differs(root: Root, row: Row, read: bool) -> bool:
    at = os.path.join(root.at, row.path)
    try:
        size = os.stat(at).st_size
        if row.size and str(size) != row.size:
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


def _edited(path: str, expected: str | None, file: File | None) -> Finding:
    return Finding(
        "foreign-edit",
        f"{show_path(path)} is not as patchkit left it",
        Where(file=path),
        expected=expected or "no file",
        found=file.oid if file is not None else "no file",
        next="put your change aside (or into a patch of its own), restore the file, "
        "and run the command again",
    )


def _oid(blob: Blob | None) -> str | None:
    return blob.oid if blob is not None else None
