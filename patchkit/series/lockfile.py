"""series.lock: what applying must give, path by path, patch by patch.

The lock is keyed by path and blob id, so that it says the same of a git checkout, an sdist, a
wheel and an installed package. One chain stands for the whole series and one for each stack.

    format   1
    pin      name, upstream, commit, files: the pin it was made from, repeated
    entries  sha256 of what the series file says, comments left out
    patches  [[name, sha256], …] in series order
    proofs   path below the series folder -> sha256
    series   the chain of the whole series (every guard on)
    stacks   name -> chain

A chain: `patches` (the names it applies, in order), `trees` (source -> tree id at the base and
after each patch), `paths` (path -> [[patch, "MODE BLOBID" or null], …]: at the base, where the
patch is "", and after each patch that changes the path; null where there is no file).

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FORMAT = 1
FILE = "series.lock"
BASE = ""
"""Name of the step before the first patch."""


@dataclass(frozen=True)
class Blob:
    """A file as the lock knows it: git mode and blob id."""

    mode: int
    oid: str

    def __str__(self) -> str:
        return f"{self.mode:06o} {self.oid}"


@dataclass(frozen=True)
class Step:
    """The state of one path after `patch` ("" is the base). blob None: there is no file."""

    patch: str
    blob: Blob | None


@dataclass(frozen=True)
class Chain:
    """What one selection of patches does.

    patches: the names, in series order. trees: source name -> the tree ids, one for the base and
    one after each patch, so one more than `patches`. paths: touched path -> its steps; the first
    is the base.
    """

    patches: tuple[str, ...] = ()
    trees: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)

    def before(self, path: str) -> Blob | None:
        """The path at the base. KeyError where the chain does not touch it."""
        return self.paths[path][0].blob

    def after(self, path: str, upto: int | None = None) -> Blob | None:
        """The path after the first `upto` patches (all of them without it)."""
        if upto is None or upto >= len(self.patches):
            return self.paths[path][-1].blob
        done = set(self.patches[:upto])
        return next(
            s.blob for s in reversed(self.paths[path]) if s.patch == BASE or s.patch in done
        )

    def base_tree(self, source: str) -> str:
        """Id of the source's base tree. KeyError where the lock does not know the source."""
        return self.trees[source][0]

    def patched_tree(self, source: str, upto: int | None = None) -> str:
        """Id of the source's tree after the first `upto` patches (all of them without it)."""
        return self.trees[source][-1 if upto is None else upto]


@dataclass(frozen=True)
class LockedPin:
    """The pin that the lock was made from: see pins.toml. files: name -> sha256 in hex."""

    name: str
    upstream: str
    commit: str = ""
    commit_prefix: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lock:
    """A whole series.lock. entries: `entries_digest` of the series file."""

    pin: LockedPin
    entries: str
    patches: tuple[tuple[str, str], ...] = ()
    proofs: Mapping[str, str] = field(default_factory=dict)
    series: Chain = field(default_factory=Chain)
    stacks: Mapping[str, Chain] = field(default_factory=dict)

    def chain(self, stack: str | None) -> Chain:
        """The chain of a stack; None means the whole series. KeyError where it is not locked."""
        return self.series if stack is None else self.stacks[stack]

    def digest_of(self, patch: str) -> str | None:
        """sha256 of a patch; None where the lock does not know it."""
        return dict(self.patches).get(patch)


def chain_of(
    patches: Sequence[str],
    trees: Mapping[str, Sequence[str]],
    base: Mapping[str, Blob | None],
    changes: Sequence[Mapping[str, Blob | None]],
) -> Chain:
    """Build a chain from what applying gave.

    base: every touched path at the base. changes: one a patch, the paths it left in another state
    (None: it deleted the file). ValueError where the lengths do not fit, or a changed path is
    missing from `base`.
    """
    if len(changes) != len(patches):
        raise ValueError("one change set a patch is needed")
    if any(len(ids) != len(patches) + 1 for ids in trees.values()):
        raise ValueError("a source needs one tree id more than there are patches")
    paths = {path: [Step(BASE, blob)] for path, blob in base.items()}
    for patch, changed in zip(patches, changes):  # noqa: B905  (3.10 has strict; lengths checked)
        for path, blob in changed.items():
            if path not in paths:
                raise ValueError(f"no base state for {path!r}")
            if paths[path][-1].blob != blob:
                paths[path].append(Step(patch, blob))
    return Chain(
        tuple(patches),
        {source: tuple(ids) for source, ids in sorted(trees.items())},
        {path: tuple(steps) for path, steps in sorted(paths.items()) if len(steps) > 1},
    )
