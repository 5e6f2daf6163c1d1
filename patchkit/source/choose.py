"""Which source a command line means."""

from __future__ import annotations

import os

from patchkit.errors import UsageFault
from patchkit.series.pins import Upstream
from patchkit.source.base import Source

DEFAULT = "sdist"


def open_source(
    spec: str, upstream: Upstream, *, offline: bool = False, asking: bool = False
) -> Source:
    """The source that `--source SPEC` names: sdist, git, a folder, or a .tar.gz file.

    offline: it must not ask a network. asking: ask a git server for the tag even where all is in
    the cache. Raises UsageFault for anything else.
    """
    if spec == DEFAULT:
        from patchkit.source.sdist import SdistSource

        return SdistSource(upstream, offline)
    if spec == "git":
        from patchkit.source.commit import GitSource

        return GitSource(upstream, offline, asking)
    if os.path.isdir(spec):
        from patchkit.source.folder import FolderSource

        return FolderSource(os.path.abspath(spec), upstream)
    if os.path.isfile(spec):
        from patchkit.source.sdist import SdistSource

        return SdistSource(upstream, offline, archive=os.path.abspath(spec))
    raise UsageFault.because(
        f"--source {spec} is neither sdist, git, a folder nor a .tar.gz file",
        next="--source sdist",
    )
