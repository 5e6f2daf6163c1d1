"""What became of a patch, in a word: for tables, for JSON and for the bundle alike."""

from __future__ import annotations


def state_shown(state: str, *, ok: bool, written: bool) -> str:
    """An outcome's state as a run says it: nothing was applied where nothing was written.

    ok: whether the run was refused by nothing. written: whether it wrote.
    """
    if state != "applied" or written:
        return state
    return "would apply" if ok else "not written"
