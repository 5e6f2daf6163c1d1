"""`import --pr`: a pull request as one patch, its head commit recorded; and whether it has moved.

What it changes is what its head has over the place where it left the server's default branch, as
the server's own page shows it; where it was merged, over the branch before that merge.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchkit.authoring.headers import with_fields
from patchkit.authoring.messages import header_of
from patchkit.authoring.names import from_subject, patch_name
from patchkit.authoring.taking import Commits, Taken
from patchkit.bring.carried import Piece
from patchkit.bring.leaving import without
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.folder import Series
from patchkit.series.header import Field, Header
from patchkit.series.pins import Upstream
from patchkit.source.graph import Graph
from patchkit.source.remote import Server
from patchkit.store.address import blotted, public
from patchkit.store.repo import Store

_PAGE = re.compile(r"(https?://[^/\s]+/\S+?)(/-)?/(pull|pulls|merge_requests)/(\d+)(?:/[\w/-]*)?")
_PLAIN = re.compile(r"(\S+)#(\d+)")
_ORIGIN = re.compile(r"(?:[\w-]+,\s*)?(\S+), head ([0-9a-f]{40})")
_GITHUB = re.compile(r"(https?://[^/\s]+/[^/\s]+/[^/\s]+?)(?:\.git)?/?")
_LEFT_OUT = re.compile(r"^Left out: (.+)\.$", re.MULTILINE)
_MAIN = ("refs/remotes/origin/HEAD", "HEAD")
SHOWN = 20
"""Commits that a header names."""


@dataclass(frozen=True)
class Pull:
    """A pull request. url: the git server, or a clone that has it (clone); page: how the header
    names it; ref: its head's name."""

    url: str
    page: str
    ref: str
    number: int
    clone: bool = False

    def from_clone(self, place: str) -> Pull:
        """The same, its commits taken from a repository of the user's. Raises UsageFault."""
        if not os.path.isdir(place):
            raise UsageFault.because(
                f"--from {place}: there is no such folder; with --pr it is a clone",
                next="git clone the upstream, then --from CLONE",
            )
        return replace(self, url=os.path.abspath(place), clone=True)


def pull_of(text: str, upstream: Upstream | None, clone: str | None = None) -> Pull:
    """What `--pr` names: a number, the page's address, or GIT-ADDRESS#NUMBER.

    clone: a repository of the user's that has it, in the place of the server. Raises UsageFault.
    """
    if clone is not None:
        known = upstream is not None and upstream.git
        return pull_of(text, upstream if known else Upstream("", "", git=clone)).from_clone(clone)
    if text.isdecimal() and text.isascii():
        if upstream is None or not upstream.git:
            raise UsageFault.because(
                "--pr NUMBER needs the git address of the upstream in pins.toml",
                next=f"--pr https://github.com/OWNER/NAME/pull/{text}",
            )
        return _pull(upstream.git, int(text))
    page = _PAGE.fullmatch(text)
    if page:
        kind = "merge-requests" if page[3] == "merge_requests" else "pull"
        between = page[2] or ""
        named = f"{page[1]}{between}/{page[3]}/{page[4]}"
        url = _reached(f"{page[1]}.git", upstream)
        return Pull(url, public(named), f"refs/{kind}/{page[4]}/head", int(page[4]))
    plain = _PLAIN.fullmatch(text)
    if plain and "::" not in plain[1] and not plain[1].startswith("-"):
        return _pull(plain[1], int(plain[2]))
    raise UsageFault.because(
        f"--pr {text}: neither a number nor the address of a pull request",
        next="--pr 54513, or --pr https://github.com/OWNER/NAME/pull/54513",
    )


def _reached(url: str, upstream: Upstream | None) -> str:
    """The address as pins.toml has it, where that is the same place: it may hold a password, which
    no header does."""
    known = upstream.git if upstream is not None else ""
    same = public(known).rstrip("/").removesuffix(".git") == url.removesuffix(".git")
    return known if known and same else url


def _pull(url: str, number: int) -> Pull:
    place = public(url)
    github = _GITHUB.fullmatch(place)
    page = f"{github[1]}/pull/{number}" if github else f"{place}#{number}"
    return Pull(url, page, f"refs/pull/{number}/head", number)


def pulled(
    store: Store, upstream: Upstream, pull: Pull, exclude: Sequence[str], name: str | None
) -> Piece:
    """The pull request as one change. Raises Refused, EnvironmentFault(network)."""
    graph = Graph(store, pull.url)
    there = graph.refs(pull.ref, *_MAIN)
    head = there.get(pull.ref, "")
    if not head:
        raise Refused(_no_such(pull))
    # In a clone something else than the default branch may be checked out.
    main = next((ref for ref in _MAIN if ref in there), "HEAD")
    graph.fetch([pull.ref, main])
    base = _left(graph, pull, head, there.get(main, ""))
    server = Server(store, replace(upstream, git=pull.url), "")
    server.fetch_commits([base, head], [pull.ref, main])
    with Commits(store, pull.page, objects=graph.objects, fetch=server.fetch_blobs) as commits:
        told = [commits.told(commit) for commit in graph.between(base, head)]
        before, after = commits.tree_of(base), commits.tree_of(head)
        changes, gone = without(commits.changes(before, after), exclude, pull.page)
        header = _header(pull, head, told, gone)
        tree = commits.tree(before)
        tree.prefetch(sorted(changes))
        made = patch_name(name) if name is not None else from_subject(header.subject)
        said = (f"head {head[:12]}", *((f"{len(gone)} file(s) left out",) if gone else ()))
        return Piece(made, header, tree, changes, pull.page, said, fixed=name is not None)


def _left(graph: Graph, pull: Pull, head: str, tip: str) -> str:
    """Where the pull request left the default branch."""
    base = graph.merge_base(tip, head) if tip else ""
    inside = base == head
    if inside:
        merge = graph.merged_by(head, tip)
        base = graph.merge_base(graph.parent(merge), head) if merge else ""
    if not base or base == head:
        raise Refused(
            Finding(
                "unsupported",
                f"{pull.page}: it cannot be seen where it left the default branch",
                expected="a branch with commits of its own",
                found=f"head {head[:12]}"
                + (", a commit of the default branch" if inside else ", which shares no commit"),
                next=f"patchkit import --commits FIRST^..{head[:12]} --from {blotted(pull.url)}",
            )
        )
    return base


def _header(pull: Pull, head: str, told: Sequence[Taken], gone: Sequence[str]) -> Header:
    first = told[0] if told else None
    header = header_of(first, None, "").header if first else Header(subject=pull.page)
    others = [t for t in told[1:] if t.subject]
    body = header.body
    if others:
        rows = [f"- {t.subject}" for t in told[:SHOWN]]
        rows += [f"- and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
        body = f"{body}\n\nIts commits:\n".lstrip("\n") + "\n".join(rows)
    if gone:
        body = f"{body}\n\nLeft out: {', '.join(gone)}.".lstrip("\n")
    fields = (Field("Origin", f"upstream, {pull.page}, head {head}"), Field("Forwarded", "yes"))
    return with_fields(replace(header, body=body), fields)


def moved(store: Store, upstream: Upstream, series: Series) -> tuple[Finding, ...]:
    """For each patch that came from a pull request whether that has another head now.

    Asks the server. Raises EnvironmentFault(network).
    """
    out: list[Finding] = []
    asked: dict[tuple[str, str], str] = {}
    for entry, header in zip(series.entries, series.headers, strict=True):
        found = _ORIGIN.fullmatch(" ".join(header.first("Origin").split()))
        if found is None:
            continue
        try:
            pull = pull_of(found[1], upstream)
        except UsageFault:
            continue
        if (pull.url, pull.ref) not in asked:
            graph = Graph(store, pull.url)
            asked[pull.url, pull.ref] = graph.refs(pull.ref).get(pull.ref, "")
        now = asked[pull.url, pull.ref]
        if now == found[2]:
            continue
        out.append(
            Finding(
                "head-moved",
                f"{pull.page} has another head than the one that was imported"
                if now
                else f"{pull.page} is not there any more",
                Where(patch=entry.patch),
                expected=f"head {found[2]}",
                found=f"head {now}" if now else "no such pull request",
                next=f"patchkit import --pr {_again(pull, upstream)} --name {entry.patch} --replace"
                + _excluding(header)
                if now
                else "nothing: the patch stays as it is",
                note=not now,
            )
        )
    return tuple(out)


def _excluding(header: Header) -> str:
    """The options that leave out again what was left out."""
    found = _LEFT_OUT.search(header.body)
    paths = found[1].split(", ") if found else []
    return "".join(f" --exclude {shlex.quote(path)}" for path in paths)


def _again(pull: Pull, upstream: Upstream) -> str:
    return str(pull.number) if pull.url == upstream.git else pull.page


def _no_such(pull: Pull) -> Finding:
    if pull.clone:
        return Finding(
            "missing-target",
            f"the clone does not have {pull.page}",
            Where(file=pull.url),
            expected=f"a ref {pull.ref}",
            found="none",
            next=f"git -C {shlex.quote(pull.url)} fetch origin {pull.ref}:{pull.ref}",
        )
    return Finding(
        "missing-target",
        f"{pull.page} is not there",
        expected=f"a ref {pull.ref} at the server",
        found="none",
        next="check the number; a closed one may have been removed",
    )


def by_hand(
    finding: Finding, pull: Pull, upstream: Upstream, exclude: Sequence[str], name: str | None
) -> Finding:
    """That the server cannot be reached, with the ways that need no network here."""
    if finding.name != "network" or pull.clone:
        return finding
    rest = f" --name {shlex.quote(name)}" if name else ""
    rest += "".join(f" --exclude {shlex.quote(glob)}" for glob in exclude)
    cloned = (
        f"git -C CLONE fetch origin {pull.ref}:{pull.ref}",
        f"patchkit import --pr {_again(pull, upstream)} --from CLONE{rest}",
    )
    if not pull.page.startswith("http") or "#" in pull.page:
        return replace(finding, next=f"with a clone that can reach it: {', then '.join(cloned)}")
    # One diff for all commits where one name is wanted; else a mail each.
    file = f"{pull.page.rpartition('/')[2]}.{'diff' if name else 'patch'}"
    curl = f"curl -fLO {pull.page.rpartition('/')[0]}/{file}"
    return replace(
        finding,
        next=f"where it can be reached: {curl}; here, with that file: patchkit import {file}{rest}",
        details=(*finding.details, "or with a clone, which keeps its head in Origin:", *cloned),
    )
