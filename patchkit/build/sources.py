"""The sources that a compiled build would fetch, brought first: by commit id, or from a folder.

A build runs without a network, so each must lie where CMake looks for it. What could not be
brought is said by name, all of it at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchkit.build.built import Input
from patchkit.errors import EnvironmentFault, Finding, UsageFault, Where
from patchkit.series.pins import FILE, Pin
from patchkit.source import vendored
from patchkit.source.base import Progress, silent
from patchkit.store.address import public
from patchkit.store.repo import Store
from patchkit.upstreams.building import Fetched

MIRROR = (
    "a network, or a mirror in your git configuration: git config --global "
    "url.MIRROR.insteadOf {address}; or --use {name}=DIR"
)


@dataclass(frozen=True)
class Brought:
    """One source, whole in the store. parts: itself and its submodules."""

    fetched: Fetched
    parts: tuple[vendored.Part, ...]

    @property
    def inputs(self) -> list[Input]:
        """As the wheel's papers name it."""
        rows = []
        for part in self.parts:
            name = f"{self.fetched.name}/{part.path}" if part.path else self.fetched.name
            digests = [("gitCommit", part.commit)] if part.commit else []
            where = public(part.address) or "a folder"
            rows.append(Input("source", f"{name} {where}", (*digests, ("gitTree", part.tree))))
        return rows


def stated(pin: Pin, row: Fetched) -> str:
    """The commit that is meant: the ref, or what pins.toml says of the tag; "" for neither."""
    return row.ref if row.fixed else pin.sources.get((row.address, row.ref), "")


def used(texts: Sequence[str], fetched: Sequence[Fetched]) -> dict[str, str]:
    """What `--use NAME=DIR` says: a source's name -> folder. Raises UsageFault."""
    names = {row.name.lower(): row.name for row in fetched}
    out = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or name.lower() not in names:
            raise UsageFault.because(
                f"--use takes NAME=DIR; the names are {', '.join(names.values()) or 'none'}"
            )
        if not os.path.isdir(folder) or not os.listdir(folder):
            raise UsageFault(
                Finding(
                    "usage",
                    f"--use {name}: there is no such folder, or nothing in it",
                    Where(file=folder),
                    expected=f"the sources of {name}",
                )
            )
        out[names[name.lower()]] = os.path.abspath(folder)
    return out


def bring(
    store: Store,
    pin: Pin,
    fetched: Sequence[Fetched],
    folders: Mapping[str, str],
    *,
    offline: bool = False,
    progress: Progress = silent,
) -> tuple[list[Brought], list[Finding]]:
    """Every source that can be had, and why the others cannot; notes on what rests on a tag."""
    out, findings = [], []
    for row in fetched:
        if row.name in folders:
            progress(f"read {folders[row.name]}", 0)
            out.append(Brought(row, vendored.of_folder(store, folders[row.name])))
            findings.append(_own(row, folders[row.name]))
            continue
        try:
            commit = stated(pin, row)
            if not commit and not offline:
                commit = vendored.tag(store, row.address, row.ref)
                findings += [_by_tag(pin, row, commit)] if commit else []
            if not commit:
                raise EnvironmentFault(_no_commit(row, offline))
            ref = "" if row.fixed else row.ref
            parts = vendored.bring(
                store,
                row.address,
                commit,
                ref=ref,
                submodules=row.submodules,
                offline=offline,
                progress=progress,
            )
        except EnvironmentFault as error:
            findings.append(_absent(row, error))
        else:
            out.append(Brought(row, parts))
    return out, findings


def lay_out(store: Store, brought: Sequence[Brought], at: str) -> None:
    """Write every source to where CMake's FetchContent looks for it below the folder `at`."""
    for each in brought:
        vendored.lay_out(store, each.parts, os.path.join(at, each.fetched.folder))


def absent(
    store: Store, pin: Pin, fetched: Sequence[Fetched], folders: Mapping[str, str]
) -> list[Finding]:
    """Notes: what a build would have to fetch first. No network is asked."""
    given = [row for row in fetched if row.name not in folders]
    found = bring(store, pin, given, {}, offline=True)[1]
    return [
        replace(f, message=f.message.replace("could not be fetched", "is not here yet"), note=True)
        for f in found
    ]


def _absent(row: Fetched, error: EnvironmentFault) -> Finding:
    first = error.findings[0]
    return Finding(
        first.name if first.name == "verify-failed" else "network",
        f"{row.name} could not be fetched: {first.message}",
        Where(file=row.where),
        expected=f"{row.address} at {row.ref}",
        found=first.found,
        next=MIRROR.format(address=row.address, name=row.name),
        details=first.details,
    )


def _no_commit(row: Fetched, offline: bool) -> Finding:
    if offline:
        return Finding("network", f"which commit {row.ref} is can only be asked with a network")
    return Finding("network", f"the server has no tag {row.ref}")


def _by_tag(pin: Pin, row: Fetched, commit: str) -> Finding:
    return Finding(
        "unsupported",
        f"{row.name} is asked for by a tag, which may be moved: it is {commit} now",
        Where(file=row.where),
        expected="a commit id",
        found=row.ref,
        next=f'compare it, and write "{row.address} {row.ref}" = "{commit}" below '
        f'[pins."{pin.name}".sources] in {FILE}',
        note=True,
    )


def _own(row: Fetched, folder: str) -> Finding:
    return Finding(
        "unsupported",
        f"{row.name} is taken from a folder: nothing says that it is what upstream asks for",
        Where(file=folder),
        expected=f"{row.address} at {row.ref}",
        note=True,
    )
