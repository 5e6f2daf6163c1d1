"""Git objects: one bare repository in the user's cache folder, shared by all projects.

`Store.open()` is the entry. Objects are read through one long-lived `git cat-file --batch`, every
one checked against its id, and written as packs that this package builds itself (`pack`): hashing
and packing a chain of commits in one process costs a fifth of what `git fast-import` takes, and
no work tree, index or ref is touched.
"""

from patchkit.store.commits import Chain, Commit
from patchkit.store.pipes import Missing
from patchkit.store.repo import Store
from patchkit.store.results import Result, key_of
from patchkit.store.tree import Listed, StoreTree

__all__ = ["Chain", "Commit", "Listed", "Missing", "Result", "Store", "StoreTree", "key_of"]
