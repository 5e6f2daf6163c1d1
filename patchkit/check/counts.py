"""How much a patch changes."""

from __future__ import annotations

from patchkit.engine.model import Patch


def counts(patch: Patch) -> tuple[int, int, int]:
    """Files, added lines and removed lines of a patch."""
    plus = minus = 0
    for _, _, hunk in patch.hunks():
        for tag, _ in hunk.lines:
            plus += tag == b"+"
            minus += tag == b"-"
    return len({section.path for section in patch.sections}), plus, minus
