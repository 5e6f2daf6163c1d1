"""Applied patches taken back, each hunk exactly where its result was left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from patchkit.engine.apply import put
from patchkit.engine.model import File, Hunk, Tree
from patchkit.engine.outcome import Edit
from patchkit.engine.rule import Rule
from patchkit.engine.strip import Root
from patchkit.engine.work import Work
from patchkit.errors import Finding
from patchkit.target.installed_state import Recorded


def left_at(edits: Iterable[Edit]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Where the results of an applied patch's hunks stand: `Recorded.starts`."""
    out = []
    for edit in edits:
        if edit.new is None or not edit.hunks:
            continue
        starts, net = [], 0
        for hunk, start in zip(edit.hunks, edit.starts):  # noqa: B905  (3.10; equal lengths)
            starts.append(start + net)
            net += hunk.net
        out.append((edit.new, tuple(starts)))
    return tuple(out)


def take_back(
    tree: Tree, patches: Sequence[Recorded]
) -> tuple[dict[str, File | None], tuple[Finding, ...]]:
    """What `patches`, applied in this order, change when they are taken out of `tree`.

    The findings say what does not hold; the changes mean nothing then.
    """
    work = Work(tree)
    for recorded in reversed(patches):
        if not recorded.sections:  # all of it was there before it was asked for
            continue
        try:
            patch = recorded.cut()
        except ValueError as error:
            return {}, (Finding("journal", str(error)),)
        root = Root(recorded.strip, recorded.directory)
        starts = _Starts(recorded.starts)
        outcome = put(
            work,
            patch,
            Rule(exact=True),
            root,
            reverse=not recorded.reverse,
            starts=starts,
        )
        if outcome.state != "applied":
            return {}, outcome.findings
        work.take(outcome.changes)
    return dict(work.changes), ()


class _Starts:
    """Answers the engine with the recorded lines: of a path's sections the last one first."""

    def __init__(self, recorded: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        self.left: dict[str, list[tuple[int, ...]]] = {}
        for path, starts in recorded:
            self.left.setdefault(path, []).append(starts)

    def __call__(self, path: str, hunks: Sequence[Hunk]) -> Sequence[int]:
        waiting = self.left.get(path)
        starts = waiting.pop() if waiting else ()
        if len(starts) == len(hunks):
            return starts
        return [max(hunk.old_start - 1, 0) for hunk in hunks]


def gives_back(tree: Tree, patches: Sequence[Recorded], base: Mapping[str, File | None]) -> bool:
    """Whether taking `patches` out of `tree` gives exactly the bytes of `base` again."""
    changes, wrong = take_back(tree, patches)
    if wrong:
        return False
    for path, file in base.items():
        found = changes[path] if path in changes else tree.get(path)
        if (found is None) != (file is None):
            return False
        if found is not None and file is not None and found.data != file.data:
            return False
    return True
