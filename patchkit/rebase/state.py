"""A rebase under way: what was asked, what was settled, kept in the project until it ends."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patchkit.derive.outputs import output_folder
from patchkit.derive.project import Project
from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.files.root import OWN, Root
from patchkit.rebase.plan import Resolved

FORMAT = 1
_PLACE = f"{OWN}/rebase.json"


@dataclass(frozen=True)
class State:
    """pin, onto: names. day: what Last-Update becomes. left: patches left out by hand -> reason.
    resolved: settled conflicts. stopped: the patch whose conflict waits; at: its work tree; on:
    what that was laid out of; laid: the id of its tree as it was laid out. into: whether the
    release has a series, which gets what it lacks; again: patches that it gets once more, and new:
    whether it gets what it lacks then, too."""

    pin: str
    onto: str
    day: str
    direct: bool = False
    left: Mapping[str, str] = field(default_factory=dict)
    resolved: Mapping[str, Resolved] = field(default_factory=dict)
    stopped: str = ""
    at: str = ""
    into: bool = False
    on: str = ""
    laid: str = ""
    again: tuple[str, ...] = ()
    new: bool = False

    def settled(self, patch: str, resolved: Resolved) -> State:
        """The state with the conflict of `patch` settled."""
        return replace(self, resolved={**self.resolved, patch: resolved}, stopped="")

    def without(self, patch: str, reason: str) -> State:
        """The state with `patch` left out."""
        stopped = "" if patch == self.stopped else self.stopped
        return replace(self, left={**self.left, patch: reason}, stopped=stopped)


def path_of(project: Project) -> str:
    """Where the state of a project stands."""
    return os.path.join(project.folder, *_PLACE.split("/"))


def tree_of(project: Project, pin: str, onto: str) -> str:
    """Where the conflicts of a rebase are laid out."""
    return output_folder(project, f"rebase-{pin}-{onto}")


def load(project: Project) -> State | None:
    """The rebase under way; None where there is none. Raises Refused(journal)."""
    at = path_of(project)
    if not os.path.lexists(at):
        return None
    try:
        body = json.loads(read_file(at))
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']}")
        texts = [str(body[key]) for key in ("pin", "onto", "day", "stopped", "at")]
        if any("/" in name or name.startswith(".") for name in texts[:2]):
            raise ValueError("a pin's name is a path")
        return State(
            texts[0],
            texts[1],
            texts[2],
            bool(body["direct"]),
            {str(k): str(v) for k, v in body["left"].items()},
            {str(k): read_resolved(v) for k, v in body["resolved"].items()},
            texts[3],
            # Never the path that the file says: that folder is going to be removed.
            tree_of(project, texts[0], texts[1]) if texts[4] else "",
            bool(body.get("into", False)),
            str(body.get("on", "")),
            str(body.get("laid", "")),
            tuple(map(str, body.get("again", ()))),
            bool(body.get("new", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(
            Finding(
                "journal",
                f"the state of a rebase cannot be read: {error}",
                Where(file=at),
                expected=f"a state of format {FORMAT}",
                next=f"patchkit rebase --abort, or remove {at}",
            )
        ) from error


def save(project: Project, state: State) -> None:
    """Replace the state, in one rename."""
    body = {
        "format": FORMAT,
        "pin": state.pin,
        "onto": state.onto,
        "day": state.day,
        "direct": state.direct,
        "left": dict(state.left),
        "resolved": {name: write_resolved(r) for name, r in state.resolved.items()},
        "stopped": state.stopped,
        "at": state.at,
        "into": state.into,
        "on": state.on,
        "laid": state.laid,
        "again": list(state.again),
        "new": state.new,
    }
    data = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode("ascii")
    # The project is held: what a killed run left half written is overwritten, not left beside it.
    Root(project.folder).put(_PLACE, File(data))


def forget(project: Project) -> None:
    """Remove the state, and what a killed run left of it."""
    root = Root(project.folder)
    root.remove(_PLACE)
    root.sweep(_PLACE)


def write_resolved(resolved: Resolved) -> dict[str, object]:
    """A settled conflict as JSON can hold it: text where it is text."""
    files: dict[str, object] = {}
    for path, file in sorted(resolved.changes.items()):
        if file is None:
            files[path] = None
            continue
        try:
            files[path] = {"mode": f"{file.mode:o}", "text": file.data.decode("utf-8")}
        except UnicodeDecodeError:
            files[path] = {"mode": f"{file.mode:o}", "base64": base64.b64encode(file.data).decode()}
    before = dict(sorted(resolved.before.items()))
    return {"before": before, "files": files, "of": resolved.of}


def read_resolved(body: object) -> Resolved:
    """Back from JSON. Raises ValueError, KeyError, TypeError for anything else."""
    if not isinstance(body, dict):
        raise TypeError("not a settled conflict")
    changes: dict[str, File | None] = {}
    for path, row in body["files"].items():
        reason = unsafe(path)
        if reason is not None:
            raise ValueError(f"a path may not be used: {reason}")
        if row is None:
            changes[path] = None
            continue
        mode = int(row["mode"], 8)
        if mode not in (REGULAR, EXECUTABLE, SYMLINK):
            raise ValueError("not a mode")
        data = row["text"].encode() if "text" in row else base64.b64decode(row["base64"])
        changes[path] = File(data, mode)
    before = {str(path): str(oid) for path, oid in body["before"].items()}
    return Resolved(changes, before, str(body.get("of", "")))
