"""What a build gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Input:
    """Something the wheel was made from. kind: base-wheel, sdist, commit, tree, patch, lock,
    environment. digests: algorithm -> hex digits."""

    kind: str
    name: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Built:
    """A wheel that stands. how: overlay or empty. content: its content digest. changed, gone,
    left_out: tree paths. tools: programs that may have an influence on the bytes. stamp: the
    moment (year … second, UTC) that stands for now in what is written beside the wheel."""

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
