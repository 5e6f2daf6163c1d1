"""The folder that a wheel is written into, and what stands beside it: provenance and SBOM."""

from __future__ import annotations

import contextlib
import json
import os
import re

from patchkit.build import provenance, sbom
from patchkit.build.basewheel import is_wheel_name
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


def base_in(papers: str) -> tuple[str, str] | None:
    """Name and sha256 of the base wheel that a provenance states; None where nothing says it.

    It lies beside the wheel and is not signed, so it is good for a hint and no more.
    """
    try:
        with open(papers, "rb") as stream:
            said = json.loads(stream.read(1 << 22))
        rows = said["predicate"]["buildDefinition"]["resolvedDependencies"]
        found = [r for r in rows if r["annotations"]["kind"] == "base-wheel"]
        name, sha256 = found[0]["name"], found[0]["digest"]["sha256"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    whole = isinstance(name, str) and isinstance(sha256, str)
    fits = whole and is_wheel_name(name) and re.fullmatch("[0-9a-f]{64}", sha256)
    return (name, sha256) if fits else None


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
