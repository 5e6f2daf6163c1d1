"""What a run of a project's own code on a CPU needs, where a project needs anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from patchkit.upstreams.base import KINDS, Known


@dataclass(frozen=True)
class Proving:
    """environment: variables. prelude: Python that runs before the package is imported. tests:
    the folder of its own tests. nvcc: flags for its CUDA sources; those that begin with -I name
    a folder of the tree. headers: stand-ins, by name, for headers that a toolkit may lack."""

    environment: Mapping[str, str] = field(default_factory=dict)
    prelude: str = ""
    tests: str = "tests"
    nvcc: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def proving(known: Known) -> Proving:
    """What is known of how to run this upstream's code."""
    module = import_module(KINDS[known.kind])
    return cast("Proving", getattr(module, "PROVING", Proving()))
