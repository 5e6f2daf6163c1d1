"""What stands beside a wheel: its provenance and its SBOM."""

from __future__ import annotations

from patchkit.build import provenance, sbom
from patchkit.build.built import Built
from patchkit.build.inputs import Inputs
from patchkit.files.atomic import write_file


def write_beside(inputs: Inputs, built: Built) -> tuple[str, str]:
    """Write both; their paths are returned. Raises EnvironmentFault(disk)."""
    stem = built.path.removesuffix(".whl")
    first, second = stem + provenance.ENDING, stem + sbom.ENDING
    write_file(first, provenance.dump(provenance.statement(inputs, built)))
    write_file(second, provenance.dump(sbom.document(inputs, built)))
    return first, second
