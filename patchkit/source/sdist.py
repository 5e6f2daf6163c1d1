"""The default source: the sdist on the package index, one verified file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.errors import Finding, Refused, Where
from patchkit.files.lock import locked
from patchkit.series.pins import Pin, Upstream
from patchkit.source.base import (
    Base,
    Progress,
    base_key,
    check_pin,
    import_files,
    recalled_base,
    remember_base,
    silent,
)
from patchkit.source.digest import digest_of
from patchkit.source.pinned import SDIST, fetch_pinned, sdist_of
from patchkit.store.repo import Store
from patchkit.upstreams import Known, known

_WAIT = 3600.0


@dataclass(frozen=True)
class SdistSource:
    """The pin's sdist. offline: never ask a network. archive: a file to take instead."""

    upstream: Upstream
    offline: bool = False
    archive: str = ""
    kind: str = "sdist"

    def tree(self, store: Store, pin: Pin, progress: Progress = silent) -> Base:
        """The base tree; see `Source`."""
        about = known(self.upstream)
        name, sha256 = sdist_of(pin)
        if self.archive:
            _check_archive(self.archive, sha256, pin)
        key = base_key(about, "sdist", sha256)
        base = recalled_base(store, key, self.kind)
        if base is None:
            # One process imports, others wait: an import takes seconds, a second one the same.
            with locked(os.path.join(store.root, f"import-{sha256[:16]}.lock"), wait=_WAIT):
                base = recalled_base(store, key, self.kind)
                if base is None:
                    base = self._imported(store, pin, name, sha256, about, key, progress)
        check_pin(pin, base.version, base.commit, name, _version(name))
        return base

    def _imported(
        self,
        store: Store,
        pin: Pin,
        name: str,
        sha256: str,
        about: Known,
        key: str,
        progress: Progress,
    ) -> Base:
        from patchkit.source.archive import read_sdist

        path = self.archive or fetch_pinned(
            self.upstream, pin, name, root=store.root, offline=self.offline, progress=progress
        )

        def entries() -> Iterator[tuple[str, int, bytes]]:
            label = f"read {name}"
            for done, entry in enumerate(read_sdist(path), 1):
                yield entry
                if done % 100 == 0:
                    progress(label, done)

        tree_id, aside, generated = import_files(store, about, entries())
        base = Base(
            tree_id,
            self.kind,
            name=name,
            version=about.version_of(generated) or "",
            commit=about.commit_of(generated) or "",
            sha256=sha256,
            gaps=about.gaps(store.tree(tree_id)),
            load_generated=lambda: generated,
        )
        remember_base(store, key, base, aside)
        return base


def _version(name: str) -> str:
    """The version that a sdist's file name states."""
    return name.removesuffix(SDIST).rpartition("-")[2]


def _check_archive(path: str, sha256: str, pin: Pin) -> None:
    found = digest_of(path)
    if found != sha256:
        raise Refused(
            Finding(
                "pin-mismatch",
                f"{os.path.basename(path)} is not the sdist of pin {pin.name}",
                Where(file=path),
                expected=f"sha256:{sha256}",
                found=f"sha256:{found}",
                next="leave out --source: the pinned file is fetched",
            )
        )
