"""The files of a pin (sdist, wheels): found at the index, fetched once, verified by sha256."""

from __future__ import annotations

import os

from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.series.pins import Pin, Upstream
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.store.cache import DOWNLOADS, cache_root

SDIST = ".tar.gz"


def sdist_of(pin: Pin) -> tuple[str, str]:
    """Name and sha256 of the pin's sdist. Raises Refused(pin-incomplete) where it has none."""
    for name, digest in sorted(pin.files.items()):
        if name.endswith(SDIST):
            return name, digest.removeprefix("sha256:")
    raise Refused(
        Finding(
            "pin-incomplete",
            f"pin {pin.name} states no sdist",
            expected=f'a line "….tar.gz" = "sha256:…" in [pins."{pin.name}".files]',
            found=", ".join(sorted(pin.files)) or "no files",
            next=f"patchkit pin {pin.name} --complete",
        )
    )


def fetch_pinned(
    upstream: Upstream,
    pin: Pin,
    name: str,
    *,
    root: str | None = None,
    offline: bool = False,
    progress: Progress = silent,
) -> str:
    """The path of the pin's file `name` (a key of its files), verified, in the cache.

    root: the cache folder. offline: never ask a network. Raises Refused(pin-mismatch) where the
    index states another digest, EnvironmentFault(network, disk) where it cannot be had.
    """
    sha256 = pin.files[name].removeprefix("sha256:")
    folder = os.path.join(root or cache_root(), DOWNLOADS)
    path = os.path.join(folder, name)
    if os.path.exists(path):
        found = digest_of(path)
        if found == sha256:
            return path
        if offline:
            raise EnvironmentFault(_spoilt(path, sha256, found))
    if offline:
        raise EnvironmentFault(_not_cached(pin, name))

    # Not needed once a pin is in the store, and it takes 50 ms to import.
    from patchkit.source.fetch import download
    from patchkit.source.index import find_file
    from patchkit.source.pipconf import pip_settings

    settings = pip_settings()
    progress(f"find {name}", 0)
    entry = find_file(upstream.pypi or upstream.name, name, sha256, settings)
    if entry.sha256 and entry.sha256 != sha256:
        raise Refused(
            Finding(
                "pin-mismatch",
                f"the index states another digest for {name} than pin {pin.name}",
                Where(file=name),
                expected=f"sha256:{sha256}",
                found=f"sha256:{entry.sha256}",
                next=f'compare both with the release page, then mend [pins."{pin.name}".files]',
            )
        )
    return download(entry.url, folder, name, sha256, settings, progress, entry.size)


def _spoilt(path: str, sha256: str, found: str) -> Finding:
    return Finding(
        "verify-failed",
        f"{os.path.basename(path)} in patchkit's cache is not the pinned file",
        Where(file=path),
        expected=f"sha256:{sha256}",
        found=f"sha256:{found}",
        next="run the command again with a network: it is fetched anew",
    )


def _not_cached(pin: Pin, name: str) -> Finding:
    return Finding(
        "network",
        f"{name} is not in patchkit's cache, and --offline forbids fetching it",
        expected=name,
        found="no such file in the cache",
        next=f"patchkit fetch --pin {pin.name}, with a network",
    )
