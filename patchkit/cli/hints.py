"""What to do next, where only the command line tells it in full."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from shlex import join

from patchkit.errors import Finding, PatchkitError
from patchkit.files.root import ANOTHER

WHERE_TO = {
    "apply": "--to DIR",
    "revert": "--to DIR",
    "new": "--to DIR",
    "edit": "--to DIR",
    "build": "--out DIR",
    "export": "--to DIR",
    "report": "--to DIR",
    "bundle": "--output FILE",
}
"""The option of a verb that names another place for what it writes."""


def completed(finding: Finding, verb: str) -> Finding:
    """The finding with a next step that can be typed.

    Where an option is missing that is the whole command, as it was typed and with the option;
    where a folder cannot be written, the way to name another, for the verbs that have one.
    """
    if finding.next.startswith(("--pin ", "--author ")):
        return replace(finding, next=f"{join(['patchkit', *sys.argv[1:]])} {finding.next}")
    way = _elsewhere(finding, verb) if finding.next.endswith(ANOTHER) else ""
    return replace(finding, next=f"{finding.next}, or name another with {way}") if way else finding


def _elsewhere(finding: Finding, verb: str) -> str:
    if _in_cache(finding.where.file):
        return "PATCHKIT_CACHE=DIR"
    return "" if "--installed" in sys.argv else WHERE_TO.get(verb, "")


def _in_cache(path: str | None) -> bool:
    from patchkit.store.cache import cache_root

    try:
        return f"{path or ''}/".startswith(os.path.join(cache_root(), ""))
    except PatchkitError:
        return False
