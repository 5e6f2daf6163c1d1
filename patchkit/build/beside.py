"""The folder that a wheel is written into, and what stands beside it: provenance and SBOM."""

from __future__ import annotations

import contextlib
import os

from patchkit.build import provenance, sbom
from patchkit.build.built import Built
from patchkit.build.inputs import Inputs
from patchkit.errors import EnvironmentFault, Finding, UsageFault, Where
from patchkit.files.atomic import write_file
from patchkit.files.growing import remove_file


def check_folder(out: str) -> None:
    """Refuse, before anything is fetched, a folder that no wheel can be written into; it is not
    made yet.

    Raises UsageFault where it is a file, EnvironmentFault(disk) where it may not be written.
    """
    above = out
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise UsageFault(
            Finding(
                "usage",
                "the wheel goes into a folder, and there is something else in its place",
                Where(file=above),
                expected="a folder, or nothing",
                found="a file" if os.path.isfile(above) else "no folder",
                next="--out DIR",
            )
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise EnvironmentFault(
            Finding("disk", "the folder may not be written", Where(file=above), next="--out DIR")
        )


def papers_of(wheel: str) -> tuple[str, str]:
    """Paths of a wheel's provenance and SBOM."""
    stem = wheel.removesuffix(".whl")
    return stem + provenance.ENDING, stem + sbom.ENDING


def write_beside(inputs: Inputs, built: Built, before: frozenset[str]) -> tuple[str, str]:
    """Write both; their paths are returned. Raises EnvironmentFault(disk).

    before: names that were in the folder. Where the papers cannot be written, a wheel that is new
    goes too: none is without its papers.
    """
    first, second = papers_of(built.path)
    try:
        write_file(first, provenance.dump(provenance.statement(inputs, built)))
        write_file(second, provenance.dump(sbom.document(inputs, built)))
    except BaseException:
        for path in (built.path, first, second):
            if os.path.basename(path) not in before:
                with contextlib.suppress(EnvironmentFault):
                    remove_file(path)
        raise
    return first, second
