"""What is wrong with a project, as far as its files say: nothing is fetched and nothing applied."""

from __future__ import annotations

import os
from collections.abc import Iterator

from patchkit.authoring.headers import identity
from patchkit.authoring.start import ATTRIBUTES
from patchkit.authoring.workplace import STATE as EDITED
from patchkit.check import digests, unused
from patchkit.derive.project import Project
from patchkit.derive.proofs import Origins, locked_proofs, module_of, proof_module
from patchkit.derive.selection import WHOLE
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.series.folder import Series
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin
from patchkit.target.worktree import STATE, made_for

SHOWN = 6
_COVERS = ("*", "*.patch", "series/**", "series/**/*.patch", "/series/**")
"""Patterns of .gitattributes that take in every patch."""


def health(project: Project) -> list[Finding]:
    """Every fault, and notes, each with the command that mends it."""
    out: list[Finding] = []
    have = [pin for pin in project.pins.pins.values() if project.has_series(pin.name)]
    if not have:
        out.append(_no_series(project))
    for pin in have:
        out += _pin(project, pin)
    out += [f for pin in project.pins.pins.values() for f in unused.incomplete(pin)]
    out += _work_trees(project)
    out += _attributes(project)
    out += _author(project)
    return list(dict.fromkeys(out))


def _pin(project: Project, pin: Pin) -> Iterator[Finding]:
    try:
        series = project.series(pin.name, strict=False)
    except Refused as refusal:
        yield from refusal.findings
        return
    yield from series.refused
    try:
        lock = project.lock(pin.name)
    except Refused as refusal:
        yield from refusal.findings
    else:
        if not series.refused:
            proofs = locked_proofs(project, pin.name, series)
            yield from digests.compare(pin, series, proofs, lock)
        yield from _stacks(project, pin, lock)
    yield from _unlisted(pin, series)
    yield from _unproven(project, pin, series)


def _stacks(project: Project, pin: Pin, lock: Lock) -> Iterator[Finding]:
    names = {stack.name for stack in project.locked_stacks}
    if names != set(lock.stacks):
        yield Finding(
            "lock-stale",
            f"the lock of {pin.name} speaks of other stacks than pins.toml",
            Where(file=os.path.join("series", pin.name, "series.lock")),
            expected=", ".join(sorted(names)),
            found=", ".join(sorted(lock.stacks)),
            next=f"patchkit lock --pin {pin.name}",
        )


def _unlisted(pin: Pin, series: Series) -> Iterator[Finding]:
    for path in series.unlisted:
        where = f"series/{pin.name}/{path}"
        yield Finding(
            "unused",
            f"no line of the series of {pin.name} names {path}: it is never applied",
            Where(patch=path),
            next=f"patchkit import {where} --pin {pin.name}, or remove the file",
            note=True,
        )


def _unproven(project: Project, pin: Pin, series: Series) -> Iterator[Finding]:
    known: Origins = {}
    bare = [
        entry.patch
        for entry, header in zip(series.entries, series.headers, strict=True)
        if module_of(project, pin.name, entry.patch, header, known) is None
    ]
    if bare and len(bare) < len(series.entries):
        # A project that has no proof at all has decided against them.
        more = f" and {len(bare) - SHOWN} more" if len(bare) > SHOWN else ""
        yield Finding(
            "proof-missing",
            f"{len(bare)} patch(es) of {pin.name} have no proof: {', '.join(bare[:SHOWN])}{more}",
            expected=f"a module in series/{pin.name}/proofs",
            found="none",
            next=f"write series/{pin.name}/proofs/{proof_module(bare[0])}, then patchkit prove",
            note=True,
        )


def _work_trees(project: Project) -> Iterator[Finding]:
    build = os.path.join(project.folder, "build")
    for name in sorted(os.listdir(build)) if os.path.isdir(build) else ():
        at = os.path.join(build, name)
        if os.path.isfile(os.path.join(at, EDITED)) or not os.path.isfile(os.path.join(at, STATE)):
            continue
        try:
            pin, stack, tree = made_for(at)
            lock = project.lock(pin) if project.has_series(pin) else None
        except Refused as refusal:
            yield from refusal.findings
            continue
        chain = lock and (lock.series if stack == WHOLE else lock.stacks.get(stack))
        trees = {ids[-1] for ids in chain.trees.values()} if chain else set()
        if tree not in trees:
            option = "--all" if stack == WHOLE else f"--stack {stack}"
            yield Finding(
                "not-built-from-this",
                f"build/{name} was made from another series than that of today",
                Where(file=f"build/{name}"),
                expected=f"tree {min(trees)}" if trees else f"a locked stack {stack} of {pin}",
                found=f"tree {tree}",
                next=f"patchkit apply --pin {pin} {option} --to build/{name}"
                if trees
                else f"remove build/{name}",
                note=True,
            )


def _attributes(project: Project) -> Iterator[Finding]:
    file = Root(project.folder).get(".gitattributes", 1 << 20)
    lines = file.data.decode("utf-8", "replace").splitlines() if file is not None else []
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not any(w[0] in _COVERS and {"-text", "binary"} & set(w[1:]) for w in words):
        yield Finding(
            "line-endings",
            "git may change the line ends of patches when it checks them out",
            Where(file=".gitattributes"),
            expected=f"a line `{ATTRIBUTES[1]}`",
            found="no such line",
            next=f"echo '{ATTRIBUTES[1]}' >> .gitattributes",
            note=True,
        )


def _author(project: Project) -> Iterator[Finding]:
    try:
        known = identity(os.fspath(project.folder))
    except EnvironmentFault:
        return  # no git: said already
    if not known:
        yield Finding(
            "git",
            "git knows no author: patches that have none cannot be given one",
            expected="user.name and user.email",
            found="neither",
            next='git config --global user.name "NAME"; git config --global user.email MAIL',
            note=True,
        )


def _no_series(project: Project) -> Finding:
    return Finding(
        "missing-patch",
        "no pin has a series",
        Where(file=os.fspath(project.folder)),
        expected="series/PIN/series",
        found="none",
        next="patchkit new NAME"
        if project.pins.pins
        else "patchkit pin RELEASE --add, then patchkit new NAME",
        note=True,
    )
