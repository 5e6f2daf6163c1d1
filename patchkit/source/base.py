"""What a source is, and what it yields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from patchkit.engine.model import GITLINK, File
from patchkit.errors import EnvironmentFault, Finding, Refused, Where
from patchkit.series.pins import Pin
from patchkit.store.repo import Store
from patchkit.store.results import Result, key_of
from patchkit.store.tree import Fetch, StoreTree
from patchkit.upstreams import Known


class Progress(Protocol):
    """Told of work that takes a while: what, how much is done, of how much (0: unknown)."""

    def __call__(self, label: str, done: int, total: int = 0) -> None: ...


def silent(label: str, done: int, total: int = 0) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Base:
    """A base tree in the store.

    tree_id: 40 hex digits. source: "sdist", "folder" or "git". name: what it came from (a file
    name, a folder, a commit). version, commit: what the source says of itself ("" where it says
    nothing). sha256: digest of the archive. gaps: notes (sdist-gap and the like). drift: what is
    wrong though the tree is the pinned one (tag-moved). fetch: brings blobs that the store lacks
    (git only).
    """

    tree_id: str
    source: str
    name: str = ""
    version: str = ""
    commit: str = ""
    sha256: str = ""
    gaps: tuple[Finding, ...] = ()
    drift: tuple[Finding, ...] = ()
    fetch: Fetch | None = None
    load_generated: Callable[[], Mapping[str, File]] = field(default=dict, repr=False)

    @cached_property
    def generated(self) -> Mapping[str, File]:
        """Files that the upstream's build made: not in the tree, written untracked."""
        return self.load_generated()

    def tree(self, store: Store) -> StoreTree:
        """The tree, read lazily."""
        return store.tree(self.tree_id, self.fetch)

    def verify(self, store: Store) -> tuple[Finding, ...]:
        """Every object that is in the store read and hashed; see `Store.verify`."""
        return store.verify(self.tree_id, partial=self.source == "git")

    def complete(self, store: Store) -> None:
        """Make sure that every blob of the tree is in the store: before a work tree is written.

        Raises EnvironmentFault(network) where some must be fetched and cannot be.
        """
        if self.source == "git":
            wanted = [f.oid for f in self.tree(store).walk() if f.mode != GITLINK]
            if self.fetch is not None:
                self.fetch(wanted)
            elif absent := store.objects.absent(wanted):
                raise EnvironmentFault(
                    Finding(
                        "network",
                        "not every file of the base is in patchkit's cache, and --offline forbids "
                        "fetching it",
                        expected=f"{len(wanted)} files",
                        found=f"{len(absent)} are missing",
                        next="run the command once without --offline",
                    )
                )


class Source(Protocol):
    """Yields base trees."""

    @property
    def kind(self) -> str:
        """`sdist`, `folder` or `git`."""

    def tree(self, store: Store, pin: Pin, progress: Progress = silent) -> Base:
        """The base tree of `pin`, fetched and imported where it is not there yet.

        Raises Refused(pin-mismatch, …) where the source is not the pin's, EnvironmentFault
        (network, git, disk) where it cannot be had.
        """


def check_pin(pin: Pin, version: str, commit: str, what: str, expected: str = "") -> None:
    """Compare what a source says of itself with the pin; raise Refused(pin-mismatch) with all.

    expected: a version that it must have, besides the pin's name where that is a version.
    """
    findings = []
    for release in dict.fromkeys(r for r in (expected, _release(pin.name)) if r):
        if version and version != release:
            findings.append(
                Finding(
                    "pin-mismatch",
                    f"{what} is another release than pin {pin.name} states",
                    expected=f"version {release}",
                    found=f"version {version}",
                    next=f'give the source of {pin.name}, or mend [pins."{pin.name}"] in pins.toml',
                )
            )
    own = pin.commit or pin.commit_prefix
    if commit and own and not pin.is_of(commit):
        findings.append(
            Finding(
                "pin-mismatch",
                f"{what} was made from another commit than {pin.name} states",
                expected=f"commit {own}",
                found=f"commit {commit}",
                next=f'mend the commit of [pins."{pin.name}"] in pins.toml, or its files',
            )
        )
    if findings:
        raise Refused(*findings)


def _release(name: str) -> str:
    found = re.fullmatch(r"v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)*)", name)
    return found[1] if found else ""


def base_key(known: Known, *parts: str) -> str:
    """Key of a base tree in the store's results: what it is made of, and by which rules."""
    return key_of("base-2", known.kind, str(known.rules), known.root, known.package, *parts)


def remember_base(store: Store, key: str, base: Base, generated_tree: str) -> None:
    """Record an imported base, so that the next run reads it from the store."""
    facts = {
        "name": base.name,
        "version": base.version,
        "commit": base.commit,
        "sha256": base.sha256,
        "gaps": [[g.message, g.where.file, g.expected, g.found, g.next] for g in base.gaps],
    }
    store.remember(key, (base.tree_id, generated_tree), json.dumps(facts, sort_keys=True))


def recalled_base(store: Store, key: str, source: str) -> Base | None:
    """The base recorded under `key`, where all of it is still intact."""
    result = store.cached(key)
    try:
        return _base_of(store, result, source) if result is not None else None
    except (ValueError, KeyError, TypeError):
        return None  # recorded by another version of patchkit: it is imported again


def _base_of(store: Store, result: Result, source: str) -> Base:
    facts = json.loads(result.text)
    tree_id, generated_tree = result.ids
    return Base(
        tree_id,
        source,
        name=facts["name"],
        version=facts["version"],
        commit=facts["commit"],
        sha256=facts["sha256"],
        gaps=tuple(
            Finding("sdist-gap", m, Where(file=f), expected=e, found=o, next=n, note=True)
            for m, f, e, o, n in facts["gaps"]
        ),
        load_generated=lambda: files_of(store, generated_tree),
    )


def files_of(store: Store, tree_id: str) -> dict[str, File]:
    """All files of a small tree."""
    tree = store.tree(tree_id)
    return {f.path: File(data, f.mode) for f, data in tree.contents(tree.walk())}


def import_files(
    store: Store, known: Known, entries: Iterable[tuple[str, int, bytes]]
) -> tuple[str, str, dict[str, File]]:
    """Import a source's files (path, git mode, bytes), the generated ones apart.

    Gives the base tree's id, the id of the tree of the generated files, and those files.
    """
    generated: dict[str, File] = {}

    def kept() -> Iterator[tuple[str, int, bytes]]:
        for path, mode, data in entries:
            if known.generated(path, data):
                generated[path] = File(data, mode)
            else:
                yield path, mode, data

    tree_id = store.import_tree(kept())
    aside = store.import_tree((p, f.mode, f.data) for p, f in generated.items())
    return tree_id, aside, generated
