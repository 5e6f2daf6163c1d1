"""Conflicts settled before, shared in the repository: git's rerere, for a team.

`series/.resolutions/KEY.json`, where the key is made of the three versions of every file that
clashed. One that fits is put into the conflict's work tree and said, never taken unseen.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

from patchkit.derive.project import Project
from patchkit.engine.model import File
from patchkit.files.atomic import read_file
from patchkit.rebase.plan import Resolved
from patchkit.rebase.state import read_resolved, write_resolved

FOLDER = os.path.join("series", ".resolutions")

Three = Mapping[str, tuple[File | None, File | None, File | None]]
"""Path -> the file at the old base, there now, and as the patch made it."""


def key(three: Three) -> str:
    """The conflict's key, 40 hex digits: the same for the same three versions of every file."""
    total = hashlib.sha256()
    for path, versions in sorted(three.items()):
        ids = " ".join(f"{f.mode:o}:{f.oid}" if f is not None else "-" for f in versions)
        total.update(f"{len(path)}:{path} {ids}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()[:40]


def find(project: Project, name: str) -> Resolved | None:
    """The resolution under a key; None where there is none, or where it cannot be read."""
    at = os.path.join(project.folder, FOLDER, f"{name}.json")
    if not os.path.isfile(at):
        return None
    try:
        return read_resolved(json.loads(read_file(at)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def file_of(name: str, patch: str, onto: str, resolved: Resolved) -> dict[str, File]:
    """The file that keeps a resolution, by its path in the project."""
    body = {"patch": patch, "onto": onto, **write_resolved(resolved)}
    data = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode("ascii")
    return {f"series/.resolutions/{name}.json": File(data)}
