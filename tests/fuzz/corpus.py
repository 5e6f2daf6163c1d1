"""The inputs a fuzzing run left: one zip a target, each member named by the sha1 of its bytes."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
EPOCH = (1980, 1, 1, 0, 0, 0)


def read(target: str) -> list[bytes]:
    """The inputs of a target, in the order of their names; empty where there are none yet."""
    at = FOLDER / f"{target}.zip"
    if not at.exists():
        return []
    with zipfile.ZipFile(at) as packed:
        return [packed.read(name) for name in sorted(packed.namelist())]


def write(target: str, inputs: Iterable[bytes]) -> int:
    """Pack the inputs; the same inputs give the same file. Their number."""
    named = {hashlib.sha1(data, usedforsecurity=False).hexdigest(): data for data in inputs}
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(FOLDER / f"{target}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(named):
            packed.writestr(zipfile.ZipInfo(name, EPOCH), named[name], zipfile.ZIP_DEFLATED)
    return len(named)
