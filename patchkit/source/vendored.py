"""Other projects' sources that a build takes: each one commit by its id, with its submodules.

Objects go into the store, so every byte that is laid out is checked against its id, and a second
build asks no network. How a server is reached is git's own business: a mirror is named in the
user's git configuration (`url.<mirror>.insteadOf`), and cannot give other bytes than the id's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, File
from patchkit.engine.paths import unsafe
from patchkit.errors import EnvironmentFault, Finding
from patchkit.files.atomic import make_folder
from patchkit.files.growing import remove_folder
from patchkit.files.root import Root
from patchkit.series.pins import Upstream, git_address
from patchkit.source.base import Progress, silent
from patchkit.source.remote import Server
from patchkit.store import git
from patchkit.store.pipes import Missing
from patchkit.store.repo import Store

MODULES = ".gitmodules"
MAX_PARTS = 64
"""Submodules of one source, theirs included."""
_FILE_LIMIT = 512 << 20


@dataclass(frozen=True)
class Part:
    """A source or a submodule of one. path: where it stands below the source, "" for itself.
    commit: "" where it is a folder of the user's. tree: its tree id."""

    path: str
    address: str
    commit: str
    tree: str


def bring(
    store: Store,
    address: str,
    commit: str,
    *,
    ref: str = "",
    submodules: tuple[str, ...] | None = None,
    offline: bool = False,
    progress: Progress = silent,
) -> tuple[Part, ...]:
    """Have the commit whole in the store, and its submodules (all, or those named).

    ref: what leads to the commit, for servers that serve no such id. Raises EnvironmentFault
    (network, verify-failed).
    """
    parts: list[Part] = []
    waiting = [("", address, commit)]
    while waiting:
        path, url, oid = waiting.pop()
        if len(parts) == MAX_PARTS:
            raise EnvironmentFault(
                Finding("too-large", f"{address} has more than {MAX_PARTS} submodules")
            )
        part = Part(path, url, oid, _whole(store, url, oid, "" if path else ref, offline, progress))
        parts.append(part)
        for below, its_url, its_commit in _submodules(store, part):
            if path or submodules is None or below in submodules:
                waiting.append((f"{path}/{below}" if path else below, its_url, its_commit))
    return tuple(sorted(parts, key=lambda part: part.path))


def of_folder(store: Store, path: str) -> tuple[Part, ...]:
    """A folder of the user's as a source: its files as they are now, whatever its repository says.

    Raises Refused as `Store.import_tree` does.
    """
    root = Root(path)

    def entries() -> Iterator[tuple[str, int, bytes]]:
        for name in root.walk():
            file = None if f"/{name}".startswith("/.git/") else root.get(name, _FILE_LIMIT)
            if file is not None:
                yield name, file.mode, file.data

    return (Part("", "", "", store.import_tree(entries())),)


def tag(store: Store, address: str, name: str) -> str:
    """The commit that a tag (or branch) names at the server now, "" for none."""
    return _server(store, address, name).find(name)[1]


def lay_out(store: Store, parts: tuple[Part, ...], at: str) -> None:
    """Write the parts into the folder `at`, anew."""
    remove_folder(at)
    make_folder(at)
    root = Root(at)
    for part in parts:
        lead = f"{part.path}/" if part.path else ""
        tree = store.tree(part.tree)
        for listed, data in tree.contents(tree.walk()):
            if listed.mode != GITLINK:
                root.put(lead + listed.path, File(data, listed.mode), sync=False)


def _server(store: Store, address: str, name: str) -> Server:
    return Server(store, Upstream("source", "plain", git=address), name)


def _whole(
    store: Store, address: str, commit: str, ref: str, offline: bool, progress: Progress
) -> str:
    """The tree of the commit, every file of it in the store."""
    if not _has_all(store, commit):
        if offline:
            raise EnvironmentFault(
                Finding("network", "not in patchkit's cache, and --offline forbids fetching it")
            )
        progress(f"fetch {address.rpartition('/')[2]} {commit[:12]}", 0)
        _server(store, address, ref).fetch_whole(commit, f"refs/tags/{ref}" if ref else "")
        if not _has_all(store, commit):
            raise EnvironmentFault(
                Finding("verify-failed", "the server sent something else than the commit")
            )
    return store.tree_of(commit)


def _has_all(store: Store, commit: str) -> bool:
    if not store.has(commit):
        return False
    try:
        tree = store.tree(store.tree_of(commit))
        return not store.objects.absent([f.oid for f in tree.walk() if f.mode != GITLINK])
    except Missing:
        return False


def _submodules(store: Store, part: Part) -> Iterator[tuple[str, str, str]]:
    """Path, address and commit of the submodules that a part's tree names."""
    tree = store.tree(part.tree)
    links = {f.path: f.oid for f in tree.walk() if f.mode == GITLINK}
    listed = tree.listed(MODULES)
    if not links or listed is None:
        return
    line = ["config", "--null", "--blob", listed.oid, "--list"]
    rows: dict[str, dict[str, str]] = {}
    for row in git.run(line, git_dir=store.git_dir).decode("utf-8", "replace").split("\0"):
        key, _, value = row.partition("\n")
        section, _, name = key.rpartition(".")
        rows.setdefault(section, {})[name] = value
    for found in rows.values():
        path, url = found.get("path", ""), found.get("url", "")
        if path in links and unsafe(path) is None:
            url = _joined(part.address, url)
            if git_address(url):
                yield path, url, links[path]


def _joined(address: str, url: str) -> str:
    """A submodule's address; a relative one is relative to the address of what holds it."""
    if not url.startswith(("./", "../")):
        return url
    address = address.rstrip("/")
    while url.startswith(("./", "../")):
        head, _, url = url.partition("/")
        if head == "..":
            address = address.rpartition("/")[0]
    return f"{address}/{url}"
