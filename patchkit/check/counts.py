"""How much a patch changes."""

from __future__ import annotations

from patchkit.engine.model import Patch


def counts(patch: Patch) -> tuple[int, int, int]:
    """Files, added lines and removed lines of a patch."""
    plus = minus = 0
    for _, _, hunk in patch.hunks():
        # Every line is in the old side, in the new, or in both.
        plus += len(hunk.tags) - hunk.old_count
        minus += len(hunk.tags) - hunk.new_count
    return len({section.path for section in patch.sections}), plus, minus
