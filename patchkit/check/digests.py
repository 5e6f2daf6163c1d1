"""The cheap half of check: pin, series file, patches and proofs against the lock's digests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from patchkit.errors import Finding, Where
from patchkit.series.listing import PROOFS
from patchkit.series.lockfile import Lock
from patchkit.series.pins import Pin
from patchkit.series.quilt import SeriesFile, entries_digest

if TYPE_CHECKING:
    from patchkit.series.folder import Series


def compare(pin: Pin, series: Series, proofs: Mapping[str, str], lock: Lock) -> list[Finding]:
    """Every digest that differs. proofs: path below the series folder -> sha256."""
    found = {patch.name: patch.sha256 for patch in series.patches}
    return [*compare_series(pin, series.file, found, lock), *_proofs(pin, proofs, lock)]


def compare_series(
    pin: Pin, file: SeriesFile, found: Mapping[str, str], lock: Lock
) -> list[Finding]:
    """As `compare`, of what decides a tree: the pin, the series file, the patches. found: patch
    -> sha256."""
    return [*_pin(pin, lock), *_patches(pin, file, found, lock)]


def _pin(pin: Pin, lock: Lock) -> Iterator[Finding]:
    where = Where(file="pins.toml")
    rows: list[tuple[str, str, str]] = [
        ("name", lock.pin.name, pin.name),
        ("upstream", lock.pin.upstream, pin.upstream),
        ("commit", lock.pin.commit, pin.commit),
        ("commit-prefix", lock.pin.commit_prefix, pin.commit_prefix),
    ]
    for name in sorted({*lock.pin.files, *pin.files}):
        rows.append((name, lock.pin.files.get(name, ""), pin.files.get(name, "")))
    for what, expected, found in rows:
        if what == "commit-prefix" and not found and pin.commit.startswith(expected or "-"):
            continue  # the pin was completed since
        if what == "commit" and not expected and lock.pin.commit_prefix:
            continue
        if expected != found:
            yield Finding(
                "pin-mismatch",
                f"pin {pin.name}: {what} is not the one that the series was locked on",
                where,
                expected=expected or "nothing",
                found=found or "nothing",
                next=f"put pins.toml back, or, if it is meant: patchkit lock --pin {pin.name}",
            )


def _patches(pin: Pin, file: SeriesFile, found: Mapping[str, str], lock: Lock) -> Iterator[Finding]:
    relock = f"put the file back, or, if the change is meant: patchkit lock --pin {pin.name}"
    locked = dict(lock.patches)
    for name, digest in found.items():
        if name in locked and locked[name] != digest:
            yield Finding(
                "patch-edited",
                f"{name} is not the file that was locked",
                Where(patch=name),
                expected=f"sha256 {locked[name]}",
                found=f"sha256 {digest}",
                next=relock,
            )
    order = [name for name, _ in lock.patches]
    names = [entry.patch for entry in file.entries]
    if names != order:
        gone = [n for n in order if n not in names]
        new = [n for n in names if n not in order]
        words = [f"added: {', '.join(new)}"] if new else []
        words += [f"gone: {', '.join(gone)}"] if gone else []
        yield Finding(
            "series-edited",
            "the series file does not list the patches that were locked",
            Where(file=os.path.join("series", pin.name, "series")),
            expected=", ".join(order) or "no patch",
            found="; ".join(words) or "another order: " + ", ".join(names),
            next=relock,
        )
    elif lock.entries != entries_digest(file.entries):
        yield Finding(
            "series-edited",
            "an option or a guard of the series file was changed",
            Where(file=os.path.join("series", pin.name, "series")),
            expected=f"entries {lock.entries[:12]}",
            found=f"entries {entries_digest(file.entries)[:12]}: "
            + ", ".join(entry.text() for entry in file.entries),
            next=relock,
        )


def _proofs(pin: Pin, proofs: Mapping[str, str], lock: Lock) -> Iterator[Finding]:
    for path in sorted({*proofs, *lock.proofs}):
        expected, found = lock.proofs.get(path), proofs.get(path)
        if expected != found:
            yield Finding(
                "lock-stale",
                f"{path} is not the proof that was locked",
                Where(file=_place(pin, path)),
                expected=f"sha256 {expected}" if expected else "no such file",
                found=f"sha256 {found}" if found else "no such file",
                next=f"patchkit prove, then patchkit lock --pin {pin.name}",
            )


def _place(pin: Pin, path: str) -> str:
    """Where a proof of the lock stands: below its pin, or, inherited, as PIN/proofs/FILE."""
    own = path.startswith(f"{PROOFS}/")
    return os.path.join("series", pin.name, path) if own else os.path.join("series", path)
