"""From which release on a hunk no longer holds, and what that release did to its lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from patchkit.engine.diff import diff_lines, make_hunks
from patchkit.engine.history import runs
from patchkit.engine.hunk_text import body_lines, header_line
from patchkit.engine.model import File
from patchkit.engine.text import split_lines
from patchkit.rebase.blame import HOLDS, Need, Seen, judge
from patchkit.rebase.moves import moves
from patchkit.rebase.spans import Span, across, meets, touches
from patchkit.series.heading import heading_of
from patchkit.store.tree import StoreTree

CONTEXT = 3
"""Common lines around a change that is shown."""


@dataclass(frozen=True)
class Release:
    """A release's name and its tree."""

    name: str
    tree: StoreTree


@dataclass(frozen=True)
class Blamed:
    """A hunk on the last release. path: its file's name there. since: the first release on which
    so much was done to it, "" where it holds; before: the one before that. diff: what `since` did
    to its lines, as lines of a diff. moved: release -> the file's new name from then on.
    """

    need: Need
    seen: Seen
    path: str
    since: str = ""
    before: str = ""
    diff: tuple[str, ...] = ()
    moved: dict[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every line that it needs stands."""
        return self.seen.state == HOLDS


def over_releases(needs: Iterable[Need], old: Release, releases: Sequence[Release]) -> list[Blamed]:
    """Each need looked at on every release in turn.

    releases: those after `old`, in order; the last is the one that is asked about.
    """
    return [_one(need, old, releases) for need in needs]


def _one(need: Need, old: Release, releases: Sequence[Release]) -> Blamed:
    was = old.tree.get(need.path)
    path, name = need.path, old.name
    moved: dict[str, str] = {}
    steps: list[tuple[str, str, File | None, Seen]] = [(name, path, was, Seen(HOLDS, need.lines))]
    for earlier, release in zip((old, *releases), releases, strict=False):
        path = place_of(old.tree, earlier.tree, release.tree, need, path)
        if path != steps[-1][1]:
            moved[release.name] = path
        file = release.tree.get(path)
        steps.append((release.name, path, file, judge(need, was, file)))
    last = steps[-1]
    if last[3].state == HOLDS:
        return Blamed(need, last[3], last[1], moved=moved)
    at = next(i for i, step in enumerate(steps) if step[3].rank >= last[3].rank)
    before, then = steps[at - 1], steps[at]
    return Blamed(
        need,
        last[3],
        last[1],
        then[0],
        before[0],
        done_to(need, was, before[2], then[2], then[1]),
        moved,
    )


def place_of(old: StoreTree, before: StoreTree, then: StoreTree, need: Need, path: str) -> str:
    """The name under which `then` has the file that `before` has as `path`."""
    if need.absent or then.listed(path) is not None:
        return path
    if then.listed(need.path) is not None:
        return need.path
    found = moves(old, then, [need.path]).get(need.path)
    return found or moves(before, then, [path]).get(path, path)


def done_to(
    need: Need, was: File | None, before: File | None, then: File | None, path: str
) -> tuple[str, ...]:
    """What came between `before` and `then` at the need's lines, as lines of a diff.

    was: the file on the pin's base, in which the need's lines are counted.
    """
    if then is None:
        return ("the file is gone",)
    if need.absent or was is None or before is None:
        return (f"{path} is new, with {len(split_lines(then.data))} lines",)
    old, new = split_lines(before.data), split_lines(then.data)
    since = diff_lines(split_lines(was.data), old, by_indent=False)
    span = across(since, need.lines)
    cores = [across(since, core) for core, _ in need.cores]
    shown: list[str] = []
    for hunk in make_hunks(old, new, CONTEXT, heading_of(path)):
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        ranges = [(r.old, r.old + r.removed, 0, 0) for r in runs([hunk], [start])]
        if any(meets(c, span) or any(touches(c, core) for core in cores) for c in ranges):
            shown += _text([header_line(hunk), *body_lines(hunk)])
    return tuple(shown)


def _text(lines: Iterable[bytes]) -> list[str]:
    return [line.decode("utf-8", "surrogateescape").rstrip("\r\n") for line in lines]


def shown_span(span: Span) -> str:
    """Lines as a reader counts them: 12-18, or 12, or "before 12" for none."""
    first, last = span[0] + 1, span[1]
    if last < first:
        return f"before {first}"
    return f"{first}" if first == last else f"{first}-{last}"
