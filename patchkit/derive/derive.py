"""A series applied in memory to a base, and the trees and commits that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.derive.selection import Selection
from patchkit.engine.apply import Outcome
from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import File, Tree
from patchkit.engine.rule import EXACT
from patchkit.engine.strip import strip_name
from patchkit.errors import Finding
from patchkit.series.folder import Series
from patchkit.series.header import Header
from patchkit.series.mailtext import git_date
from patchkit.store.commits import Chain, Commit
from patchkit.store.repo import Store

TRAILER = "Patch-Name"
"""Trailer of a commit that says which patch it came from."""


@dataclass(frozen=True)
class Derived:
    """What a selection of a series gives on a base.

    names, outcomes: of the selected patches, in order; where the chain failed, the outcomes say
    what became of each. findings: all that is wrong, and notes.
    """

    series: Series
    selection: Selection
    names: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every patch held."""
        return all(f.note for f in self.findings)

    def changes(self) -> list[Mapping[str, File | None]]:
        """What each selected patch changed."""
        return [outcome.changes for outcome in self.outcomes]

    def touched(self) -> list[str]:
        """Every path that some patch changed, sorted."""
        return sorted({path for changes in self.changes() for path in changes})


def derive(
    series: Series, base: Tree, selection: Selection, chosen: Sequence[bool] | None = None
) -> Derived:
    """Apply the selection exactly, in memory. Failures are in the result, all of them.

    chosen: which patches those are, where the series is a part of the one that was selected from.
    """
    if chosen is None:
        chosen = selection.of(series)
    steps = [
        Step(patch, entry.strip, entry.reverse, selected)
        for patch, entry, selected in zip(series.patches, series.entries, chosen, strict=True)
    ]
    _read_ahead(base, steps)
    chain = apply_chain(base, steps, EXACT)
    outcomes = tuple(o for o, taken in zip(chain.outcomes, chosen, strict=True) if taken)
    return Derived(
        series,
        selection,
        tuple(e.patch for e, c in zip(series.entries, chosen, strict=True) if c),
        outcomes,
        tuple(chain.findings),
    )


def _read_ahead(base: Tree, steps: Sequence[Step]) -> None:
    """Let the tree read, or fetch, every file that some patch names in one go."""
    prefetch = getattr(base, "prefetch", None)
    if prefetch is None:
        return
    named = {
        (name, max(level - 1, 0) if section.bare_names else level)
        for step in steps
        if step.selected and (level := step.strip) is not None
        for section in step.patch.sections
        for name in (section.old_path, section.new_path)
        if name is not None
    }
    paths = {strip_name(name, level) for name, level in named}
    prefetch(sorted(path for path in paths if path))


def commit_of(header: Header, name: str, changes: Mapping[str, File | None]) -> Commit:
    """The commit of one patch: author and date from its header, its name in a trailer."""
    subject = header.description or name
    body = header.long.strip("\n")
    message = "\n\n".join(part for part in (subject, body, f"{TRAILER}: {name}") if part)
    author = header.author or next(iter(header.authors), "")
    date = git_date(header.date) or ""  # one that is no date: as if there were none; lint says it
    return Commit(changes, **({"author": author} if author else {}), date=date, message=message)


def commit_all(
    store: Store, derived: Derived, base_tree: str, title: str, onto: str | None = None
) -> Chain:
    """Store the chain: a commit of the base, then one a patch. The same input, the same ids.

    onto: the commit of `base_tree` to go on from, where there is one; `title` is then not used.
    """
    headers = {
        e.patch: h for e, h in zip(derived.series.entries, derived.series.headers, strict=True)
    }
    steps = [
        commit_of(headers[name], name, outcome.changes)
        for name, outcome in zip(derived.names, derived.outcomes, strict=True)
    ]
    return store.commit_chain(base_tree, steps, onto or Commit({}, message=title))


def trees_of(store: Store, derived: Derived, base_tree: str) -> tuple[str, ...]:
    """Tree ids: the base, and after each patch. Objects are stored, commits are not."""
    steps = [Commit(changes) for changes in derived.changes()]
    chain = store.commit_chain(base_tree, steps, None)
    return chain.trees
