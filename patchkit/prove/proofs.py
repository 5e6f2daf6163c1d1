"""Which proof belongs to which patch, and what its digest covers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.derive.project import Project
from patchkit.derive.proof_text import digest
from patchkit.derive.proofs import Origins, ancestors, proof_module
from patchkit.series.folder import PROOFS, Series


@dataclass(frozen=True)
class Proof:
    """A proof: the patch it is of, its module, its mutants, the file with the reasons for hunks
    that it does not prove (None where there is none), and the digest of all it is made of.

    sha256 covers the module and every module of the folder that it imports, directly or not.
    """

    patch: str
    module: Path
    mutants: tuple[Path, ...]
    sha256: str
    unproven: Path | None = None


def find_proof(series_folder: Path, patch: str) -> Proof | None:
    """The proof of `patch` in a series' own folder; None where it has none there."""
    module = series_folder / PROOFS / proof_module(patch)
    if not module.is_file():
        return None
    mutants = mutants_of(series_folder, patch)
    return Proof(patch, module, mutants, digest(module), unproven_of(series_folder, patch))


def mutants_of(series_folder: Path, patch: str) -> tuple[Path, ...]:
    """The mutants of `patch` in a series' own folder."""
    lead = _lead(patch)
    return tuple(
        path
        for at in sorted((series_folder / PROOFS).glob("*.mutants"))
        if _lead(at.name.removesuffix(".mutants")) == lead
        for path in sorted(at.glob("*.diff"))
    )


def unproven_of(series_folder: Path, patch: str) -> Path | None:
    """The reasons for hunks of `patch` that are not proven, in a series' own folder."""
    path = series_folder / PROOFS / f"{patch.removesuffix('.patch')}.unproven"
    return path if path.is_file() else None


def _lead(patch: str) -> str:
    return proof_module(patch).removeprefix("test_").removesuffix(".py")


def proofs_of(project: Project, pin: str, series: Series) -> dict[str, Proof]:
    """The proof of every patch of `pin` that has one: its own, or that of the patch it was
    rebased from (header `Rebased-From: PIN/PATCH`), however far back. So with its mutants and its
    reasons, each for itself: a pin may have a proof of its own and the mutants of an earlier one.
    """
    found = {}
    known: Origins = {}
    for entry, header in zip(series.entries, series.headers, strict=True):
        proof: Proof | None = None
        mutants: tuple[Path, ...] = ()
        why: Path | None = None
        for at, patch in ancestors(project, pin, entry.patch, header, known):
            folder = project.series_folder(at)
            proof = proof or find_proof(folder, patch)
            mutants = mutants or mutants_of(folder, patch)
            why = why or unproven_of(folder, patch)
            if proof is not None and mutants and why is not None:
                break
        if proof is not None:
            found[entry.patch] = replace(proof, patch=entry.patch, mutants=mutants, unproven=why)
    return found
