"""Caches of compiled code that a changed source makes stale, and how to clear them.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cache:
    """One cache.

    name: how to call it. package: the import package whose files it holds, "" for any. text: a
    changed file is of concern when this is found in it, before or after. clear: a shell command.
    """

    name: str
    package: str
    text: re.Pattern[bytes]
    clear: str


CACHES = (
    # Its key holds the sources that Dynamo traced, not those of custom operators and compiler
    # passes: vllm/compilation/backends.py (traced_files) and compiler_interface.py of 0.30.0,
    # which itself advises to remove the folder.
    Cache(
        "vLLM's torch.compile cache",
        "vllm",
        re.compile(rb""),
        'rm -rf "${VLLM_CACHE_ROOT:-$HOME/.cache/vllm}/torch_compile_cache"',
    ),
    Cache(
        "Triton's kernel cache",
        "",
        re.compile(rb"\btriton\.(?:jit|autotune|heuristics)\b"),
        'rm -rf "${TRITON_CACHE_DIR:-$HOME/.triton/cache}"',
    ),
    Cache(
        "the torch.compile (Inductor) cache",
        "",
        re.compile(rb"\btorch\.(?:compile|_inductor|_dynamo)\b"),
        'rm -rf "${TORCHINDUCTOR_CACHE_DIR:-${TMPDIR:-/tmp}/torchinductor_$(id -un)}"',
    ),
)


@dataclass(frozen=True)
class Stale:
    """A cache that may hold code of changed files."""

    name: str
    clear: str
    files: tuple[str, ...]


def stale_caches(changed: Mapping[str, bytes]) -> tuple[Stale, ...]:
    """The caches of concern. changed: path below the site folder -> its bytes before and after,
    joined."""
    out = []
    for cache in CACHES:
        files = [
            path
            for path, data in sorted(changed.items())
            if path.endswith(".py")
            and (not cache.package or path.startswith(f"{cache.package}/"))
            and cache.text.search(data)
        ]
        if files:
            out.append(Stale(cache.name, cache.clear, tuple(files)))
    return tuple(out)
