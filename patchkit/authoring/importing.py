"""`import`, and `refresh PATCH` without a work tree: patch files put in their place and in form.

A hunk may stand at an offset where its whole pre-image stands at one place only; what is written
states the place it has. Anything less sure is listed with the option that settles it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.authoring.arrange import ADVICE
from patchkit.authoring.builder import Builder
from patchkit.authoring.edit import AUTHOR_HINT, chosen_guard
from patchkit.authoring.form import Row
from patchkit.authoring.headers import dated, fit, identity, same_header
from patchkit.authoring.incoming import Arrived, Incoming, plain
from patchkit.authoring.leaving import Leaving, with_left_out
from patchkit.authoring.mend import read_changed
from patchkit.authoring.names import subject_from
from patchkit.authoring.placing import LINE_ENDS, option, root_notes, said_of, there
from patchkit.authoring.sealing import Ready, seal
from patchkit.authoring.standing import Standing, unsealed
from patchkit.authoring.when import When
from patchkit.derive.carry import renames_of
from patchkit.derive.project import Project
from patchkit.engine.accepted import Place, met, unmet
from patchkit.engine.apply import apply_patch
from patchkit.engine.model import File, Patch
from patchkit.engine.outcome import Outcome
from patchkit.engine.parse import parse, scan
from patchkit.engine.recount import recount as corrected
from patchkit.engine.rule import MAX_FUZZ, Rule
from patchkit.engine.strip import Root, find_root
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.folder import Series
from patchkit.series.header import ALLOW, Header, parse_header
from patchkit.series.quilt import NAME, SeriesFile
from patchkit.series.quilt_edit import comments_lost, insert_all, insert_new
from patchkit.upstreams import known


@dataclass(frozen=True)
class How:
    """What the command line allows. accept: (file, line) places; fuzz: at most MAX_FUZZ. exclude:
    patterns of files that patch files are to lose. given: its options as they were typed, which
    the commands that messages name keep."""

    strip: int | None = None
    directory: str | None = None
    accept: frozenset[tuple[str, int]] = frozenset()
    recount: bool = False
    fuzz: int = 0
    replace: bool = False
    guard: str | None = None
    author: str = ""
    exclude: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


@dataclass
class _Run:
    """One import: the series that grows, and what is allowed."""

    builder: Builder
    how: How
    moment: When
    author: str
    met: set[Place] = field(default_factory=set)
    leaving: Leaving = field(default_factory=Leaving)

    def put(self, incoming: Incoming, like: int | None, *, in_place: bool = False) -> None:
        """One patch, at the end of what is built so far; a finding where it cannot be."""
        standing = self.builder.standing
        try:
            patch = parse(incoming.data, incoming.name, recount=self.how.recount)
        except Refused as refusal:
            self.refuse(incoming, [option(f, incoming, self.how.given) for f in refusal.findings])
            return
        try:
            raw = parse_header(patch.header)
            root = self.root(incoming, patch)
            patch, gone = self.leaving.cut(patch, root)
            if not patch.sections:
                self.builder.find([self.leaving.emptied(incoming.name, gone)])
                if like is not None:
                    self.builder.keep(like)
                return
            outcome = self.applied(incoming, patch, raw, root)
        except Refused as refusal:
            self.refuse(incoming, refusal.findings)
            return
        tree, reverse = self.builder.tree, incoming.reverse
        self.met |= met(outcome, self.how.accept, tree, reverse=reverse)
        others = root_notes(outcome, incoming, self.how.given)
        if outcome.state != "applied":
            notes = [f for f in others if f.note]
            self.refuse(incoming, [*self.why(incoming, patch, outcome), *notes])
            return
        if any(not f.note for f in others):
            self.refuse(incoming, others)
            return
        self.builder.find(others)
        # Of a mail that is one of several, or stands in the series, its form is no news.
        known = in_place or any(words.startswith("mail ") for words in incoming.said)
        silent = incoming.made or (known and raw.shape == "mail")
        said = (*incoming.said, *said_of(patch, outcome, raw, self.how.recount, made=silent))
        said += (f"left out: {', '.join(gone)}",) if gone else ()
        header, more = self.header(incoming, with_left_out(raw, gone), like, in_place)
        guard = incoming.guard
        if self.how.guard is not None:
            guard = chosen_guard(incoming.name, self.how.guard)
        if like is not None and self.how.guard is None and not in_place:
            guard = standing.series.entries[like].guard
        exact = outcome.root.strip == 1 and not outcome.root.directory and not incoming.reverse
        renames = renames_of(patch, outcome.root, reverse=incoming.reverse)
        changes = {
            path: file
            for path, file in outcome.changes.items()
            if file is not None or self.builder.tree.get(path) is not None
        }
        asks = like is not None and not in_place and not self.how.replace
        if asks and like is not None and not self.replaces(incoming, like, header, changes):
            return
        self.builder.write(
            incoming.name,
            header,
            changes,
            guard=guard,
            renames=renames,
            like=like,
            given=patch if exact and not gone else None,
            in_place=in_place,
            said=(*said, *more),
        )

    def applied(self, incoming: Incoming, patch: Patch, header: Header, root: Root) -> Outcome:
        """The patch on the tree so far, by its own and the command line's permissions."""
        tree, how = self.builder.tree, self.how
        allow = header.allow()
        allow = replace(allow, fuzz=max(allow.fuzz, min(how.fuzz, MAX_FUZZ)))
        outcome = apply_patch(
            tree, patch, Rule(allow=allow, accept=how.accept), root, incoming.reverse
        )
        if outcome.state == "refused" and not allow.line_endings:
            ends = Rule(allow=replace(allow, line_endings="target"), accept=how.accept)
            again = apply_patch(tree, patch, ends, root, incoming.reverse)
            # Where that settles some hunks only, what is left is told without the line ends.
            fewer = again.state == "refused" and again.findings != outcome.findings
            if again.state != "refused" or fewer:
                note = Finding("line-endings", LINE_ENDS, Where(patch=patch.name), note=True)
                return replace(again, notes=(*again.notes, note))
        return outcome

    def root(self, incoming: Incoming, patch: Patch) -> Root:
        standing, how = self.builder.standing, self.how
        if incoming.strip is not None:
            return Root(incoming.strip, how.directory or "")
        package = known(standing.project.pins.upstream_of(standing.pin)).package or None
        return find_root(
            self.builder.tree, patch, strip=how.strip, directory=how.directory, package=package
        )

    def why(self, incoming: Incoming, patch: Patch, outcome: Outcome) -> list[Finding]:
        """Why a patch is not taken, each reason with the option that settles it."""
        if outcome.state == "already-applied":
            return [there(self.builder, incoming, patch, outcome)]
        return [option(f, incoming, self.how.given) for f in outcome.findings]

    def refuse(self, incoming: Incoming, findings: Sequence[Finding]) -> None:
        self.builder.find(f if f.where.patch else f.in_patch(incoming.name) for f in findings)
        self.builder.rows.append(Row(incoming.name, "refused", incoming.said))

    def header(
        self, incoming: Incoming, raw: Header, like: int | None, in_place: bool
    ) -> tuple[Header, tuple[str, ...]]:
        """The header to write, fitted for git am, and what had to be changed for that."""
        old = self.builder.standing.series.headers[like] if like is not None else None
        if old is not None and not in_place and _as_filled_in(raw, old):
            return old, ()
        if old is not None and raw.shape in ("none", "prose") and old.shape == "mail":
            return old, ("the header is the one that the patch has",)
        stripped = raw.without_field(ALLOW)
        fitted = fit(
            stripped,
            subject=subject_from(incoming.name),
            author=self.how.author or self.author,
            date=self.moment.mail,
        )
        header = fitted.header
        if not header.author and not in_place:  # git am would refuse it
            words = f"nobody is known as the author of {incoming.name}"
            raise UsageFault.because(words, next=AUTHOR_HINT)
        if old is not None and same_header(header, old):
            return old, ()
        if raw.shape != "mail" and not header.first("Last-Update"):
            header = dated(header, self.moment.day)
        return header, fitted.said

    def replaces(
        self, incoming: Incoming, like: int, header: Header, changes: Mapping[str, File | None]
    ) -> bool:
        """Whether the patch of that name says the same; else a finding: nothing is replaced
        unasked."""
        if self.builder.says_the_same(like, header, changes):
            return True
        self.refuse(
            incoming,
            [
                Finding(
                    "duplicate-entry",
                    f"the series already has a patch {incoming.name}, and it is another one",
                    Where(patch=incoming.name),
                    expected="the same header and the same effect, or a name that is free",
                    found=f"another {incoming.name} in {incoming.where}",
                    next="patchkit import --replace, or --name NAME",
                )
            ],
        )
        return False


def bring(
    standing: Standing,
    arrived: Arrived,
    how: How,
    moment: When,
    *,
    after: str | None = None,
    first: bool = False,
) -> Ready:
    """The series with the patches that came: new ones where `after` says (else at the end, in a
    quilt folder behind the one before), known ones in their place.

    Raises Refused with every reason why a patch cannot be taken.
    """
    standing.whole()
    arrived = _recognised(standing, arrived)
    known_names = [p.name for p in arrived.patches if p.name in standing.names]
    # Only a series file or the mails of one file state an order; names are merely sorted.
    stated = arrived.series is not None or len({p.where for p in arrived.patches}) == 1
    if stated and [n for n in standing.names if n in known_names] != known_names:
        raise Refused(_other_order(standing.names, known_names))
    run = _run(standing, how, moment)
    run.builder.find(arrived.findings)
    run.builder.find(unsealed(standing, set(known_names)))
    coming = {p.name: p for p in arrived.patches}
    order = _order(standing, arrived, after, first)
    for name in order:
        like = standing.names.index(name) if name in standing.names else None
        if name in coming:
            run.put(coming[name], like)
        elif like is not None:
            run.builder.keep(like)
    run.leaving.require_sense(len(coming))
    run.builder.find(unmet(how.accept - run.met))
    begins = None
    if arrived.series is not None and not known_names:
        # Patches that are all new bring their comments to the place where they go.
        behind = None if after is None else standing.names[standing.index(after)]
        begins = insert_all(standing.series.file, arrived.series, after=behind, first=first)
    elif arrived.series is not None:
        begins = insert_new(standing.series.file, arrived.series, order)
        run.builder.find(_comments_left(begins, arrived.series))
    folder = standing.project.series_folder(standing.pin.name)
    adopted = [p.name for p in arrived.patches if _is_file(p.where, folder / p.name)]
    return seal(run.builder, file=begins, adopted=adopted)


def _as_filled_in(came: Header, old: Header) -> bool:
    """Whether `old` is the header `came`, with what that lacks as it was filled in then."""
    if same_header(came, old):
        return True
    again = fit(
        came.without_field(ALLOW), subject=old.subject, author=old.author, date=old.date
    ).header
    if old.first("Last-Update") and not again.first("Last-Update"):
        again = dated(again, old.first("Last-Update"))
    return same_header(again, old)


def _recognised(standing: Standing, arrived: Arrived) -> Arrived:
    """What came with the names that its patches have here: one with the whole header of a patch
    of the series (author, date and all) is that patch, whatever its file is called."""
    known = {
        (h.author, h.date, h.subject): entry.patch
        for entry, h in zip(standing.series.entries, standing.series.headers, strict=True)
        if h.author and h.date and h.subject
    }
    headers = dict(zip(standing.names, standing.series.headers, strict=True))
    out: list[Incoming] = []
    for patch in arrived.patches:
        header = parse_header(scan(patch.data, patch.name).patch.header)
        if header.author and header.date and header.subject:
            # As it was written when it came: without brackets that git am would take away.
            header = fit(header, subject=header.subject, author="", date="").header
        name = known.get((header.author, header.date, header.subject), patch.name)
        same = name in headers and same_header(headers[name], header)
        free = name not in [other.name for other in out]
        out.append(replace(patch, name=name) if same and free and not patch.fixed else patch)
    return replace(arrived, patches=tuple(out))


def _is_file(one: str, two: os.PathLike[str]) -> bool:
    return os.path.exists(one) and os.path.exists(two) and os.path.samefile(one, two)


def tidy(standing: Standing, names: Collection[str] | None, how: How, moment: When) -> Ready:
    """The series with these patches (None: all) as they stand in its folder put in their exact
    place and in form: after an edit by hand, or by quilt.
    """
    wanted = standing.names if names is None else [standing.names[standing.index(n)] for n in names]
    run = _run(standing, how, moment)
    run.builder.find(unsealed(standing, None if names is None else wanted))
    for index, entry in enumerate(standing.series.entries):
        if entry.patch not in wanted:
            run.builder.keep(index)
            continue
        patch = standing.series.patches[index]
        where = os.path.join(
            os.fspath(standing.project.series_folder(standing.pin.name)), patch.name
        )
        incoming = Incoming(patch.name, patch.data, where, entry.strip, entry.reverse, entry.guard)
        run.put(incoming, index, in_place=True)
    run.builder.find(f for f in standing.series.findings if f.note)
    run.builder.find(unmet(how.accept - run.met))
    return seal(run.builder)


def take_back(project: Project, pin: str, how: How) -> Series:
    """The series of a folder that another tool wrote in: mails decoded, counts corrected where
    that was asked for. Raises Refused where a patch cannot be read.
    """

    def edit(name: str, data: bytes) -> bytes:
        text, _ = plain(data, name)
        return corrected(text, name) if how.recount else text

    return read_changed(project, pin, edit)


def _run(standing: Standing, how: How, moment: When) -> _Run:
    author = how.author or identity(os.fspath(standing.project.folder))
    leaving = Leaving(how.exclude)
    return _Run(Builder(standing, ADVICE, moment.day), how, moment, author, leaving=leaving)


def _order(standing: Standing, arrived: Arrived, after: str | None, first: bool) -> list[str]:
    """All names of the new series, in order."""
    order = list(standing.names)
    behind: str | None = None if first else (order[-1] if order else None)
    if after is not None:
        behind = order[standing.index(after)]
    placed = after is not None or first
    for patch in arrived.patches:
        if patch.name in order:
            # A folder's own order says where its new patches stand.
            behind = patch.name if arrived.series is not None and not placed else behind
            continue
        at = order.index(behind) + 1 if behind is not None else 0
        order.insert(at, patch.name)
        behind = patch.name
    return order


def _comments_left(file: SeriesFile, theirs: SeriesFile) -> list[Finding]:
    """A note where comments of their series file stand at patches that both have."""
    lost = comments_lost(file, theirs)
    if not lost:
        return []
    return [
        Finding(
            "unused",
            "comments of their series file are left out: they stand at patches that are here "
            "already",
            Where(file=NAME),
            found="; ".join(lost),
            next="copy by hand what is to be kept",
            note=True,
        )
    ]


def _other_order(ours: Sequence[str], theirs: Sequence[str]) -> Finding:
    return Finding(
        "series-edited",
        "the patches that both have stand in another order there",
        expected=", ".join(n for n in ours if n in theirs),
        found=", ".join(theirs),
        next="patchkit move PATCH --after PATCH, until the order is the same",
    )
