"""`import --commits A..B --from REPO`: a fork's commits, one patch each."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from patchkit.authoring.headers import with_fields
from patchkit.authoring.messages import header_of
from patchkit.authoring.names import free_name, from_subject, patch_name
from patchkit.authoring.taking import Commits, Taken
from patchkit.bring.carried import Piece
from patchkit.bring.leaving import without
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.header import Field
from patchkit.series.pins import Upstream
from patchkit.source.checkout import Checkout
from patchkit.source.graph import Graph
from patchkit.source.remote import Server
from patchkit.store.address import blotted, public
from patchkit.store.repo import Store
from patchkit.store.tree import Fetch

_NAME = re.compile(r"([^~^]+)((?:[~^]\d*)*)")


@dataclass(frozen=True)
class _Repo:
    """An opened repository. first, last: the ends of the range. named: how headers call it."""

    where: str
    objects: str
    first: str
    last: str
    named: str
    fetch: Fetch | None = None
    server: Server | None = None


def forked(
    store: Store,
    upstream: Upstream,
    span: str,
    place: str,
    exclude: Sequence[str],
    taken: Collection[str],
    name: str | None,
) -> tuple[list[Piece], tuple[Finding, ...]]:
    """A change for each commit of the range, oldest first, and notes.

    place: a repository's folder, or its address. Raises UsageFault, Refused, EnvironmentFault.
    """
    first, dots, last = span.partition("..")
    if not dots or not first or not last or last.startswith("."):
        raise UsageFault.because(f"--commits {span}: not A..B", next="--commits v0.30.0..my-branch")
    repo = _local(store, place, first, last) or _remote(store, upstream, place, first, last)
    place = blotted(place)
    with Commits(store, place, objects=repo.objects, fetch=repo.fetch) as commits:
        try:
            told = commits.since(repo.first, repo.last)
        except Refused as refusal:
            raise Refused(_not_a_line(span, place, refusal.findings[0])) from None
        if not told:
            raise Refused(_nothing(span, place))
        if repo.server is not None:
            repo.server.fetch_commits([repo.first, *(t.commit for t in told)], [last, first])
        pieces: list[Piece] = []
        notes: list[Finding] = []
        names = list(taken)
        for one in told:
            if one.before == one.after:
                notes.append(_empty(one))
                continue
            where = f"commit {one.commit[:12]}"
            changes, gone = without(commits.changes(one.before, one.after), exclude, where)
            told_header = header_of(one, None, "")
            if not told_header.header.subject:
                plain = replace(told_header.header, subject=f"Commit {one.commit[:12]}")
                known = [words for words in told_header.said if not words.startswith("no subject")]
                said = (*known, "the commit has no message")
                told_header = replace(told_header, header=plain, said=said)
            made = told_header.name or from_subject(told_header.header.subject)
            made = free_name(patch_name(name) if name is not None else made, names)
            names.append(made)
            origin = f"other, {repo.named}commit {one.commit}"
            header = with_fields(told_header.header, (Field("Origin", origin),))
            if gone:
                body = f"{header.body}\n\nLeft out: {', '.join(gone)}.".lstrip("\n")
                header = replace(header, body=body)
            tree = commits.tree(one.before)
            tree.prefetch(sorted(changes))
            fixed = name is not None or bool(told_header.name)
            guard = told_header.guard or None
            pieces.append(Piece(made, header, tree, changes, where, told_header.said, guard, fixed))
        if name is not None and len(pieces) != 1:
            raise UsageFault.because(f"--name goes with one patch: {len(pieces)} came")
    return pieces, tuple(notes)


def _local(store: Store, place: str, first: str, last: str) -> _Repo | None:
    checkout = Checkout.at(place, bare=True)
    if checkout is None:
        return None
    ends = [_resolved(store, checkout, place, name) for name in (first, last)]
    return _Repo(place, checkout.objects, ends[0], ends[1], "")


def _resolved(store: Store, checkout: Checkout, place: str, name: str) -> str:
    """The commit of a name in the user's repository; no git runs under its settings."""
    found = _NAME.fullmatch(name)
    ids = checkout.named(found[1]) if found else []
    commits = checkout.peeled(store, [f"{oid}{found[2]}" for oid in ids]) if found else []
    commit = next((c for c in commits if c), "")
    if not commit:
        raise UsageFault.because(
            f"--commits: {place} has no commit {name}",
            next="a branch, a tag or an id, with ~N or ^ behind it where wanted",
        )
    return commit


def _remote(store: Store, upstream: Upstream, place: str, first: str, last: str) -> _Repo:
    if "://" not in place or "::" in place or place.startswith("-"):
        raise UsageFault.because(
            f"--from {place}: neither a git repository nor an address of one",
            next="--from ../fork, or --from https://github.com/OWNER/NAME.git",
        )
    graph = Graph(store, place)
    ends = []
    for name in (first, last):
        refs = (f"refs/heads/{name}", f"refs/tags/{name}^{{}}", f"refs/tags/{name}")
        there = {} if re.fullmatch(r"[0-9a-f]{40}", name) else graph.refs(*refs)
        commit = next((there[ref] for ref in refs if ref in there), name)
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise UsageFault.because(
                f"--commits: {blotted(place)} has no branch or tag {name}",
                next="a branch, a tag, or a commit's 40 digits",
            )
        ends.append(commit)
    graph.fetch(ends)
    server = Server(store, replace(upstream, git=place), "")
    return _Repo(
        place, graph.objects, ends[0], ends[1], f"{public(place)}, ", server.fetch_blobs, server
    )


def _not_a_line(span: str, place: str, found: Finding) -> Finding:
    return Finding(
        "unsupported",
        f"the commits {span} of {place} are not one line",
        Where(file=place),
        expected="commits with one parent each: a merge is no patch",
        found=found.found,
        next="rebase the branch onto its beginning in a clone; or import ranges without the merge",
    )


def _nothing(span: str, place: str) -> Finding:
    return Finding(
        "no-op",
        f"there is no commit in {span}",
        Where(file=place),
        expected="commits that the second has and the first has not",
        found="none",
        next="the two names the other way round?",
    )


def _empty(commit: Taken) -> Finding:
    return Finding("no-op", f"commit {commit.commit[:12]} changes nothing: left out", note=True)
