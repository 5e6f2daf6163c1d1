"""The half of check that re-derives: what applying gives now against the lock's ids."""

from __future__ import annotations

import os
from collections.abc import Iterator

from patchkit.errors import Finding, Where
from patchkit.series.lockfile import FILE, Chain, Step


def compare(pin: str, stack: str, locked: Chain, derived: Chain) -> list[Finding]:
    """Every path, patch and tree of a stack that is not as locked.

    A path's finding names no stack, so that what is wrong in several is said once; a tree that
    differs only because some path does is not said again.
    """
    found = [*_patches(pin, stack, locked, derived), *_paths(pin, locked, derived)]
    bases = [f for f in _trees(pin, stack, locked, derived) if not found or f.name != "lock-stale"]
    return [*found, *bases]


def _stale(pin: str, message: str, where: Where, expected: str, found: str) -> Finding:
    return Finding(
        "lock-stale",
        message,
        where,
        expected=expected,
        found=found,
        next=f"see what changed (git diff series/{pin}); if it is meant: patchkit lock --pin {pin}",
    )


def _patches(pin: str, stack: str, locked: Chain, derived: Chain) -> Iterator[Finding]:
    if locked.patches != derived.patches:
        yield _stale(
            pin,
            f"stack {stack} does not apply the patches that were locked",
            Where(file=os.path.join("series", pin, FILE)),
            ", ".join(locked.patches) or "no patch",
            ", ".join(derived.patches) or "no patch",
        )


def _paths(pin: str, locked: Chain, derived: Chain) -> Iterator[Finding]:
    for path in sorted({*locked.paths, *derived.paths}):
        expected = locked.paths.get(path, ())
        found = derived.paths.get(path, ())
        if expected == found:
            continue
        at, before, after = _first_difference(expected, found)
        yield _stale(
            pin,
            f"{'the base holds' if at == '' else f'{at} leaves'} another file than was locked",
            Where(patch=at or None, file=path),
            before,
            after,
        )


def _first_difference(expected: tuple[Step, ...], found: tuple[Step, ...]) -> tuple[str, str, str]:
    for number in range(max(len(expected), len(found))):
        a = expected[number] if number < len(expected) else None
        b = found[number] if number < len(found) else None
        if a != b:
            step = b or a
            assert step is not None
            return step.patch, _shown(a), _shown(b)
    raise AssertionError("no difference")


def _shown(step: Step | None) -> str:
    if step is None:
        return "untouched"
    what = str(step.blob) if step.blob is not None else "no file"
    return f"{what} after {step.patch}" if step.patch else f"{what} at the base"


def _trees(pin: str, stack: str, locked: Chain, derived: Chain) -> Iterator[Finding]:
    for source, ids in sorted(derived.trees.items()):
        expected = locked.trees.get(source)
        if expected is None or expected == ids:
            continue
        if expected[0] != ids[0]:
            yield Finding(
                "pin-mismatch",
                f"the base tree from {source} is not the one that was locked",
                Where(file=os.path.join("series", pin, FILE)),
                expected=f"tree {expected[0]}",
                found=f"tree {ids[0]}",
                next=f"patchkit cache --clear, then patchkit fetch --pin {pin}",
            )
        elif expected[-1] != ids[-1] or len(expected) != len(ids):
            yield _stale(
                pin,
                f"stack {stack}: the patched tree from {source} is not the one that was locked",
                Where(file=os.path.join("series", pin, FILE)),
                f"tree {expected[-1]}",
                f"tree {ids[-1]}",
            )
        else:
            at = next(i for i, (a, b) in enumerate(zip(expected, ids, strict=True)) if a != b)
            yield _stale(
                pin,
                f"stack {stack}: a tree in between, from {source}, is not the one that was locked",
                Where(patch=derived.patches[at - 1], file=os.path.join("series", pin, FILE)),
                f"tree {expected[at]}",
                f"tree {ids[at]}",
            )
