"""The questions that are asked of an upstream, and who answers them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from patchkit.engine.model import File, Tree
from patchkit.errors import Finding, Refused
from patchkit.series.pins import Upstream

KINDS = {"vllm": "patchkit.upstreams.vllm", "plain": "patchkit.upstreams.plain"}
"""Kind -> module; each has `describe(upstream) -> Known`."""


class Known(Protocol):
    """What is known of one upstream.

    kind: its name in pins.toml. rules: raised whenever `generated` answers differently, so that
    no cached base tree of older rules is taken. package: import name ("" where unknown). root:
    folder of the tree that holds the package folder ("" for the top).
    """

    @property
    def kind(self) -> str: ...
    @property
    def rules(self) -> int: ...
    @property
    def package(self) -> str: ...
    @property
    def root(self) -> str: ...

    def generated(self, path: str, data: bytes = b"") -> bool:
        """Whether the sdist's build made this file, so that no commit has it."""

    def version_of(self, files: Mapping[str, File]) -> str | None:
        """The release that the generated files name."""

    def commit_of(self, files: Mapping[str, File]) -> str | None:
        """The commit (7 to 40 hex digits) that the generated files name."""

    def native(self, path: str) -> bool:
        """Whether a change of this path takes effect only after compiling."""

    def outside_package(self, path: str) -> bool:
        """Whether an installed package lacks this path."""

    def gaps(self, tree: Tree) -> tuple[Finding, ...]:
        """Notes (sdist-gap) on files that the tree's own build names and that it lacks."""


def known(upstream: Upstream) -> Known:
    """What is known of `upstream`. Raises Refused(bad-pins) for an unknown kind."""
    module = KINDS.get(upstream.kind)
    if module is None:
        raise Refused(
            Finding(
                "bad-pins",
                f"upstream {upstream.name} has an unknown kind",
                expected=" or ".join(sorted(KINDS)),
                found=upstream.kind,
                next="mend pins.toml",
            )
        )
    return cast("Known", import_module(module).describe(upstream))


def usual(name: str) -> Upstream | None:
    """The table that pins.toml usually has for a project that is known by name; else None."""
    module = KINDS.get(name)
    if module is None:
        return None
    return cast("Upstream | None", getattr(import_module(module), "USUAL", None))
