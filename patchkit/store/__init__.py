"""Git objects: one bare repository in the user's cache folder, shared by all projects.

`Store.open()` is the entry. Objects are read through one long-lived `git cat-file --batch`, every
one checked against its id, and written as packs that this package builds itself (`pack`): hashing
and packing a chain of commits in one process costs a fifth of what `git fast-import` takes, and
no work tree, index or ref is touched.
"""
