"""What a build gave."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.errors import Finding


@dataclass(frozen=True)
class Input:
    """Something the wheel was made from. kind: base-wheel, sdist, commit, tree, patch, lock,
    environment, source. digests: algorithm -> hex digits."""

    kind: str
    name: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Built:
    """A wheel that stands. how: overlay, empty, cuda or cpu. content: its content digest. changed,
    gone, left_out: tree paths. stamp: the moment (year … second, UTC) that stands for now in what
    is written beside the wheel. notes: what a person should know of how it was made."""

    path: str
    file_name: str
    dist: str
    version: str
    how: str
    sha256: str
    content: str
    size: int
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    left_out: tuple[str, ...]
    inputs: tuple[Input, ...]
    requires: tuple[str, ...]
    license: str
    stamp: tuple[int, int, int, int, int, int]
    environment: tuple[tuple[str, str], ...] = ()
    notes: tuple[Finding, ...] = ()
