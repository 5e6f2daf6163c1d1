"""How messages name the next command, and what a package is patched with."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.target.dist_info import Dist
from patchkit.target.installed_state import State

DISCARD = "--discard-edits"


@dataclass(frozen=True)
class Words:
    """The commands that messages name: the `patchkit` ones, or those of a bundle."""

    apply: str = "patchkit apply --installed"
    check: str = "patchkit check --installed"
    revert: str = "patchkit revert --installed"

    def way_back(self, dist: Dist, state: State, again: str = "") -> str:
        """What to do about a patched file that was edited by hand. again: the command to run
        after it."""
        first = "keep a copy of your change (or make it a patch of its own)"
        then = f", then {again}" if again else ""
        if not state.kept:
            return f"{first}, put the file back as it was, or: {dist.reinstall}{then}"
        return f"{first}, then: {self.revert} {DISCARD}{then}"


def of(state: State) -> str:
    """Which patches a state holds, for people."""
    if state.kind == "loose":
        names = ", ".join(patch.name for patch in state.patches)
        return f"loose patches: {names}"
    stack = "the whole series" if state.stack is None else f"stack {state.stack}"
    return f"{stack} of {state.lock.pin.name}, series {state.digest[:12]}"
