"""Any Python project whose sdist setuptools makes, or that has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.engine.model import File, Tree
from patchkit.errors import Finding
from patchkit.series.pins import Upstream
from patchkit.upstreams.setuptools_files import commit_in, made_by_setuptools, version_in

NATIVE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".pxd", ".rs", ".S", ".cmake")
"""Name endings of sources that are compiled."""


@dataclass(frozen=True)
class Plain:
    """What is known of a project of which nothing special is known."""

    package: str = ""
    root: str = ""
    kind: str = "plain"
    rules: int = 1

    def generated(self, path: str, data: bytes = b"") -> bool:
        return made_by_setuptools(path, data)

    def version_of(self, files: Mapping[str, File]) -> str | None:
        return version_in(files)

    def commit_of(self, files: Mapping[str, File]) -> str | None:
        return commit_in(f for p, f in sorted(files.items()) if p.endswith(".py"))

    def native(self, path: str) -> bool:
        return path.endswith(NATIVE)

    def outside_package(self, path: str) -> bool:
        if not self.package:
            return False
        lead = f"{self.root}/" if self.root else ""
        return not path.startswith(f"{lead}{self.package.replace('.', '/')}/")

    def gaps(self, tree: Tree) -> tuple[Finding, ...]:
        return ()


def describe(upstream: Upstream) -> Plain:
    """What is known of `upstream`: what its table in pins.toml says."""
    return Plain(package=upstream.package, root=upstream.root)
