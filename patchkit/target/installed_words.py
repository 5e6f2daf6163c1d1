"""How messages name the next command, and what a package is patched with."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.target.installed_state import State


@dataclass(frozen=True)
class Words:
    """The commands that messages name: the `patchkit` ones, or those of a bundle."""

    apply: str = "patchkit apply --installed"
    check: str = "patchkit check --installed"
    revert: str = "patchkit revert --installed"


def of(state: State) -> str:
    """Which patches a state holds, for people."""
    if state.kind == "loose":
        names = ", ".join(patch.name for patch in state.patches)
        return f"loose patches: {names}"
    stack = "the whole series" if state.stack is None else f"stack {state.stack}"
    return f"{stack} of {state.lock.pin.name}, series {state.digest[:12]}"
