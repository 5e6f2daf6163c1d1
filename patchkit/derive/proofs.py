"""Which proofs a pin's lock speaks of: its own, and those that its patches inherit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from patchkit.derive.project import Project
from patchkit.series.folder import PROOFS, Series, proof_digests
from patchkit.series.header import Header, parse_header

ORIGIN = "Rebased-From"
"""Header field of a carried patch: PIN/PATCH, what it was carried from."""


def proof_module(patch: str) -> str:
    """File name of the proof of `patch`."""
    stem = patch.rpartition("/")[2].removesuffix(".patch").removesuffix(".diff")
    return f"test_{stem.replace('-', '_').replace('.', '_')}.py"


def locked_proofs(project: Project, pin: str, series: Series) -> dict[str, str]:
    """sha256 by path: of the pin's own proofs below its folder, and, as PIN/proofs/FILE, of each
    proof that a patch without one inherits from the patch it was carried from."""
    found = proof_digests(project.series_folder(pin))
    known: Origins = {}
    for entry, header in zip(series.entries, series.headers, strict=True):
        if f"{PROOFS}/{proof_module(entry.patch)}" in found:
            continue
        heir = inherited_from(project, header.first(ORIGIN), {pin}, known)
        if heir is not None:
            origin, name = heir
            path = project.series_folder(origin) / PROOFS / name
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[f"{origin}/{PROOFS}/{name}"] = digest
    return found


def module_of(
    project: Project, pin: str, patch: str, header: Header, known: Origins | None = None
) -> Path | None:
    """The proof's module: the patch's own, or that of the patch it was carried from.

    known: as for `inherited_from`.
    """
    own = project.series_folder(pin) / PROOFS / proof_module(patch)
    if own.is_file():
        return own
    heir = inherited_from(project, header.first(ORIGIN), {pin}, known)
    return project.series_folder(heir[0]) / PROOFS / heir[1] if heir is not None else None


def ancestors(
    project: Project, pin: str, patch: str, header: Header, known: Origins
) -> Iterator[tuple[str, str]]:
    """(pin, patch): the patch itself, then what it was carried from, the nearest first.

    known: as for `inherited_from`.
    """
    seen: set[str] = set()
    origin: str | None = header.first(ORIGIN)
    while patch and pin not in seen and pin in project.pins.pins:
        yield pin, patch
        seen.add(pin)
        if origin is None:
            if pin not in known:
                known[pin] = origins_of(project, pin)
            origin = known[pin].get(patch, "")
        pin, _, patch = origin.partition("/")
        origin = None


Origins = dict[str, dict[str, str]]
"""Of each pin that was read: the origin (PIN/PATCH) of its patches. Reading is what costs."""


def inherited_from(
    project: Project, origin: str, seen: set[str], known: Origins | None = None
) -> tuple[str, str] | None:
    """Pin and file name of the proof that `origin` (PIN/PATCH) has, however far back.

    known: what was read before, for who asks about many patches; it is added to.
    """
    known = {} if known is None else known
    pin, _, patch = origin.partition("/")
    if not patch or pin in seen or pin not in project.pins.pins:
        return None
    name = proof_module(patch)
    if (project.series_folder(pin) / PROOFS / name).is_file():
        return pin, name
    if pin not in known:
        known[pin] = origins_of(project, pin)
    return inherited_from(project, known[pin].get(patch, ""), {*seen, pin}, known)


def origins_of(project: Project, pin: str) -> dict[str, str]:
    """The origin of every patch of `pin` whose file can be read: no hunk is looked at."""
    if not project.has_series(pin):
        return {}
    listing = project.listing(pin)
    rows = zip(listing.entries, listing.data, strict=True)
    return {entry.patch: _origin_of(data) for entry, data in rows if data is not None}


def _origin_of(data: bytes) -> str:
    end = _DIFF.search(data)
    head = data[: end.start()] if end is not None else data
    return parse_header(head).first(ORIGIN) if _NAME in head.lower() else ""


_NAME = ORIGIN.lower().encode()
_DIFF = re.compile(rb"^(---|diff -)", re.MULTILINE)
"""Where a header ends at the latest; its fields stand above."""
