"""Conflicts settled before, shared in the repository: git's rerere, for a team.

`series/.resolutions/KEY.json`, where the key is made of the three versions of every file that
clashed. It holds a diff, not files: upstream's source is not kept twice. One that fits is put into
the conflict's work tree and said, never taken unseen.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Collection, Mapping

from patchkit.derive.project import Project
from patchkit.engine.apply import apply_patch
from patchkit.engine.model import File, Tree
from patchkit.engine.parse import parse
from patchkit.engine.rule import Rule
from patchkit.errors import Refused
from patchkit.files.atomic import read_file
from patchkit.rebase.plan import Resolved
from patchkit.series.writer import write_diff

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


def find(project: Project, name: str, now: Tree) -> Resolved | None:
    """The resolution under a key, done on `now`; None where there is none, where it cannot be
    read, or where it was made with other files than `now` has."""
    at = os.path.join(project.folder, FOLDER, f"{name}.json")
    if not os.path.isfile(at):
        return None
    try:
        body = json.loads(read_file(at))
        before = {str(path): str(oid) for path, oid in body["before"].items()}
        if "base64" in body:
            diff = base64.b64decode(body["base64"])
        else:
            diff = "\n".join(body["diff"]).encode()
        if any(_oid(now.get(path)) != oid for path, oid in before.items()):
            return None
        outcome = apply_patch(now, parse(diff, f"{name}.json"), Rule())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused):
        return None
    if outcome.state != "applied" or set(outcome.changes) != set(before):
        return None
    return Resolved(dict(outcome.changes), before)


def file_of(
    name: str,
    patch: str,
    onto: str,
    resolved: Resolved,
    now: Tree,
    text: Collection[str] = (),
) -> dict[str, File]:
    """The file that keeps a resolution, by its path in the project: what it does to `now`.

    text: files with a NUL that are edited as text. Raises Refused(binary-unsupported).
    """
    diff = write_diff(now, resolved.changes, text=text)
    body: dict[str, object] = {"patch": patch, "onto": onto, "before": dict(resolved.before)}
    try:
        body["diff"] = diff.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        body["base64"] = base64.b64encode(diff).decode("ascii")
    data = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode("ascii")
    return {f"series/.resolutions/{name}.json": File(data)}


def _oid(file: File | None) -> str:
    return file.oid if file is not None else ""
