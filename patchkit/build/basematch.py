"""The proof that a wheel was built from a base tree: file by file, by git's own ids."""

from __future__ import annotations

from collections.abc import Mapping

from patchkit.build.changes import member_of
from patchkit.build.content import Content
from patchkit.engine.model import GITLINK, SYMLINK, File
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.series.pins import Pin
from patchkit.store.tree import Listed
from patchkit.target.dist_info import release
from patchkit.upstreams import Known
from patchkit.upstreams.setuptools_files import commit_in

SHOWN = 20


def compare(
    known: Known, tree: Mapping[str, Listed], contents: Mapping[str, Content], wheel: str, pin: Pin
) -> list[Finding]:
    """pin-mismatch where a file of the package differs from the wheel's, or is not in it.

    Hidden files (.gitkeep) hold no code and are not always packaged, so they may be missing.
    """
    differing, missing = [], []
    compared = 0
    for path, listed in tree.items():
        if listed.mode in (SYMLINK, GITLINK) or known.outside_package(path):
            continue
        found = contents.get(member_of(known, path))
        if found is None:
            if not path.rpartition("/")[2].startswith("."):
                missing.append(path)
            continue
        compared += 1
        if found.oid != listed.oid:
            differing.append(path)
    if not differing and not missing and compared:
        return []
    wrong = [*differing, *missing]
    return [
        Finding(
            "pin-mismatch",
            f"{wheel} was not built from the base of pin {pin.name}",
            Where(file=wrong[0] if wrong else known.package),
            expected=f"the {compared + len(missing)} files of {known.package}/ in the base tree",
            found=f"{len(differing)} differ, {len(missing)} are missing",
            next=f"give the wheel of {pin.name}: it stands in pins.toml",
            details=tuple(show_path(p) for p in wrong[:SHOWN]),
        )
    ]


def identity(
    pin: Pin, wheel: str, version: str, wanted: str, version_file: bytes | None
) -> list[Finding]:
    """pin-mismatch where the wheel states another release or commit than the pin.

    wanted: the release of the base ("" where it is not known). version_file: the bytes of the
    file that names the commit, where the wheel has one.
    """
    found = []
    if wanted and release(version) != release(wanted):
        found.append(
            Finding(
                "pin-mismatch",
                f"{wheel} is of another release than pin {pin.name}",
                Where(file=wheel),
                expected=f"version {wanted}",
                found=f"version {version}",
                next=f"give the wheel of {pin.name}: it stands in pins.toml",
            )
        )
    commit = commit_in((File(version_file),)) if version_file is not None else None
    if commit and (pin.commit or pin.commit_prefix) and not pin.is_of(commit):
        found.append(
            Finding(
                "pin-mismatch",
                f"{wheel} was built from another commit than pin {pin.name} states",
                Where(file=wheel),
                expected=f"commit {pin.commit or pin.commit_prefix}",
                found=f"commit {commit}",
                next=f"give the wheel of {pin.name}: it stands in pins.toml",
            )
        )
    return found
