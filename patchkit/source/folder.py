"""A folder as the source: an unpacked sdist, or a git checkout of which only objects are read.

Nothing in the folder is run: no hook, no filter, no configuration of its repository. Of a
checkout the pin's own commit is read, whatever is checked out; edits in it play no part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patchkit.engine.model import GITLINK
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.files.root import Root
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
from patchkit.source.checkout import Checkout
from patchkit.store.pipes import Missing, ObjectReader
from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree
from patchkit.upstreams import Known, known

_SKIPPED = "__pycache__"
_FILE_LIMIT = 512 << 20


@dataclass(frozen=True)
class FolderSource:
    """The folder `path`."""

    path: str
    upstream: Upstream
    kind: str = "folder"

    def tree(self, store: Store, pin: Pin, progress: Progress = silent) -> Base:
        """The base tree; see `Source`. The folder is read anew each time: it may change."""
        if not os.path.isdir(self.path):
            raise EnvironmentFault(
                Finding(
                    "disk",
                    f"--source {self.path}: there is no such folder",
                    Where(file=self.path),
                    next="give an unpacked sdist or a git checkout",
                )
            )
        about = known(self.upstream)
        checkout = Checkout.at(self.path)
        if checkout is not None:
            commit = checkout.commit(store, pin)
            if commit:
                return self._from_commit(store, about, checkout, commit, progress)
            if not self._is_sdist():
                raise Refused(_lacks(self.path, pin, checkout.described(store)))
        return self._from_files(store, about, pin, progress)

    def _is_sdist(self) -> bool:
        return os.path.isfile(os.path.join(self.path, "PKG-INFO"))

    def _from_files(self, store: Store, about: Known, pin: Pin, progress: Progress) -> Base:
        root = Root(self.path)

        def entries() -> Iterator[tuple[str, int, bytes]]:
            for done, path in enumerate(root.walk(), 1):
                if f"/{_SKIPPED}/" in f"/{path}":
                    continue  # Python itself leaves these behind, and no source has them
                file = root.get(path, _FILE_LIMIT)
                if file is not None:
                    yield path, file.mode, file.data
                if done % 100 == 0:
                    progress(f"read {self.path}", done)

        tree_id, _, generated = import_files(store, about, entries())
        version = about.version_of(generated) or ""
        commit = about.commit_of(generated) or ""
        check_pin(pin, version, commit, self.path)
        return Base(
            tree_id,
            self.kind,
            name=self.path,
            version=version,
            commit=commit,
            gaps=about.gaps(store.tree(tree_id)),
            load_generated=lambda: generated,
        )

    def _from_commit(
        self, store: Store, about: Known, checkout: Checkout, commit: str, progress: Progress
    ) -> Base:
        key = base_key(about, "commit", commit)
        base = recalled_base(store, key, self.kind)
        if base is not None:
            return replace(base, name=self.path)
        with ObjectReader(store.git_dir, checkout.objects) as objects:
            there = StoreTree(objects.read(commit, "commit")[5:45].decode("ascii"), objects)

            def entries() -> Iterator[tuple[str, int, bytes]]:
                for done, (listed, data) in enumerate(there.contents(there.walk()), 1):
                    data = listed.oid.encode() if listed.mode == GITLINK else data
                    yield listed.path, listed.mode, data
                    if done % 100 == 0:
                        progress(f"read {self.path}", done)

            try:
                tree_id, aside, generated = import_files(store, about, entries())
            except Missing as error:
                raise EnvironmentFault(_partial(self.path, commit, error)) from None
        base = Base(
            tree_id,
            self.kind,
            name=self.path,
            commit=commit,
            load_generated=lambda: generated,
        )
        remember_base(store, key, base, aside)
        return base


@dataclass(frozen=True)
class CheckedOut:
    """What a git checkout is at. commit: 40 hex digits. tags: names of that commit, sorted.

    is_tag: the commit is that of the tag which was asked for.
    """

    commit: str
    tags: tuple[str, ...] = ()
    is_tag: bool = False


def checked_out(store: Store, path: str, tag: str = "") -> CheckedOut | None:
    """The commit of `tag` in the checkout `path`, else the one that is checked out; None where
    the folder is no checkout or has no commit. No git runs under its configuration.
    """
    checkout = Checkout.at(path)
    if checkout is None:
        return None
    found = dict(zip(checkout.tags, checkout.peeled(store, [*checkout.tags.values()]), strict=True))
    commit = found.get(tag, "")
    if commit:
        return CheckedOut(commit, (tag,), True)
    names = sorted(name for name, oid in found.items() if oid == checkout.head)
    return CheckedOut(checkout.head, tuple(names)) if checkout.head else None


def _lacks(path: str, pin: Pin, head: str) -> Finding:
    return Finding(
        "pin-mismatch",
        f"the checkout does not have the commit of {pin.name}",
        Where(file=path),
        expected=f"commit {pin.commit or pin.commit_prefix or '(none is stated)'}",
        found=head,
        next=f"git -C {path} fetch origin {pin.commit or 'tag ' + pin.name}, "
        "or leave out --source: the sdist needs no git",
    )


def _partial(path: str, commit: str, error: Missing) -> Finding:
    return Finding(
        "git",
        "the checkout is a partial clone: not every file of the commit is in it",
        Where(file=path),
        expected=f"all objects of {commit}",
        found=f"{error.oid} is missing",
        next=f"git -C {path} fetch --refetch --no-filter origin {commit}, or leave out --source",
    )
