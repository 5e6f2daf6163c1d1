"""Which proof belongs to which patch, and what its digest covers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.derive.project import Project
from patchkit.derive.proof_text import digest
from patchkit.derive.proofs import ORIGIN, Origins, inherited_from, proof_module
from patchkit.series.folder import PROOFS, Series


@dataclass(frozen=True)
class Proof:
    """A proof: the patch it is of, its module, its mutants, and the digest of all it is made of.

    sha256 covers the module and every module of the folder that it imports, directly or not.
    """

    patch: str
    module: Path
    mutants: tuple[Path, ...]
    sha256: str


def find_proof(series_folder: Path, patch: str) -> Proof | None:
    """The proof of `patch`; None where it has none."""
    proof = _proof_at(series_folder, proof_module(patch))
    return replace(proof, patch=patch) if proof is not None else None


def _proof_at(series_folder: Path, name: str) -> Proof | None:
    folder = series_folder / PROOFS
    module = folder / name
    if not module.is_file():
        return None
    lead = name.removeprefix("test_").removesuffix(".py")
    mutants = [
        path
        for at in sorted(folder.glob("*.mutants"))
        if at.name.removesuffix(".mutants").replace("-", "_").replace(".", "_") == lead
        for path in sorted(at.glob("*.diff"))
    ]
    return Proof("", module, tuple(mutants), digest(module))


def proofs_of(project: Project, pin: str, series: Series) -> dict[str, Proof]:
    """The proof of every patch of `pin` that has one: its own, or that of the patch it was
    rebased from (header `Rebased-From: PIN/PATCH`), however far back."""
    found = {}
    known: Origins = {}
    for entry, header in zip(series.entries, series.headers, strict=True):
        proof = find_proof(project.series_folder(pin), entry.patch)
        if proof is None:
            heir = inherited_from(project, header.first(ORIGIN), {pin}, known)
            proof = _proof_at(project.series_folder(heir[0]), heir[1]) if heir else None
        if proof is not None:
            found[entry.patch] = replace(proof, patch=entry.patch)
    return found
