"""Patch files from elsewhere: split into mails, decoded, named. Nothing is applied here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

from patchkit.authoring.gitlog import commits_of
from patchkit.authoring.names import ENDINGS, free_name, from_file, from_subject, patch_name
from patchkit.engine.mail import decode, encoded_parts
from patchkit.engine.parse_prose import BOM
from patchkit.engine.quote import show_path
from patchkit.engine.text import split_lines
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.atomic import given_file
from patchkit.files.root import Root
from patchkit.series.folder import PATCH_LIMIT, PROOFS
from patchkit.series.header import parse_header
from patchkit.series.quilt import MAX_BYTES, NAME, Entry, SeriesFile, parse_series

_GIT_MARK = re.compile(rb"From [0-9a-f]{7,64} \w{3} \w{3} ")
_MBOX_MARK = re.compile(rb"From \S+ +\w{3} \w{3} +\d+ +\d\d:\d\d")
_DIFF = re.compile(
    # Of stars only what a context diff begins with: a cover letter has "*** BLURB HERE ***".
    rb"^(?:diff -|Index: |--- |\+\+\+ |@@ |\*\*\* .*\n--- |Binary files )",
    re.MULTILINE,
)
NAME_FIELD, GUARD_FIELD = "X-Patch-Name", "X-Patch-Guard"
"""Mail headers that `export --format am` writes and git passes over."""
STDIN = "-"
"""What names standard input in the place of a file."""
_GUARD = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Incoming:
    """One patch that came. where: the file, for messages. said: what was found out about it.

    strip, reverse, guard: what a series file says of it; strip None: to be found. fixed: the name
    is somebody's choice, not made up from a file or a subject. made: no file came, the mail is
    ours.
    """

    name: str
    data: bytes
    where: str
    strip: int | None = None
    reverse: bool = False
    guard: str | None = None
    said: tuple[str, ...] = ()
    fixed: bool = False
    made: bool = False


@dataclass(frozen=True)
class Arrived:
    """All that came. series: the series file of a quilt folder, None otherwise. findings: notes
    on what is left out."""

    patches: tuple[Incoming, ...]
    series: SeriesFile | None = None
    findings: tuple[Finding, ...] = ()


def arrive(
    paths: Iterable[str], taken: Iterable[str], *, folder: str = "", name: str | None = None
) -> Arrived:
    """Read files and folders. taken: names that new patches must not get by themselves.

    folder: the series folder, in which a file has its name already. name: what the one patch is
    to be called. Raises UsageFault, Refused with every finding.
    """
    given = list(paths)
    if not given:
        raise UsageFault.because("a FILE or a DIR is needed", next="patchkit import fix.patch")
    folders = [path for path in given if os.path.isdir(path)]
    if folders and len(given) > 1:
        raise UsageFault.because("a folder is imported alone: its order is its own")
    if folders and _has_series(folders[0]):
        if name is not None:
            raise UsageFault.because("--name goes with one patch, not with a quilt folder")
        return _quilt(folders[0])
    files = _listed(folders[0]) if folders else given
    found = _files(files, list(taken), os.path.realpath(folder) if folder else "", name or "")
    if name is not None:
        if len(found.patches) != 1:
            raise UsageFault.because(f"--name goes with one patch: {len(found.patches)} came")
        (one,) = found.patches
        return Arrived((_named(one, name),), None, found.findings)
    return found


def _named(incoming: Incoming, name: str) -> Incoming:
    return replace(incoming, name=patch_name(name), fixed=True)


# -- a quilt folder ----------------------------------------------------------------------------
def _has_series(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, NAME))


def _quilt(folder: str) -> Arrived:
    root = Root(folder)
    file = root.get(NAME, MAX_BYTES)
    stated = file.data if file is not None else b""
    ends: list[Finding] = []
    if b"\r\n" in stated:  # it came over Windows; ours is written with LF
        stated = stated.replace(b"\r\n", b"\n")
        words = f"{NAME} is read with LF line ends: it has CRLF there"
        ends.append(Finding("line-endings", words, Where(file=folder), note=True))
    series = parse_series(stated, os.path.join(folder, NAME))
    found: list[Incoming] = []
    wrong: list[Finding] = []
    for entry in series.entries:
        where = os.path.join(folder, entry.patch)
        patch = root.get(entry.patch, PATCH_LIMIT)
        if patch is None:
            wrong.append(_missing(entry, where))
            continue
        data, said = plain(patch.data, where)
        found.append(
            Incoming(entry.patch, data, where, entry.strip, entry.reverse, entry.guard, said, True)
        )
    if wrong:
        raise Refused(*wrong)
    named = set(series.names())
    rest = [
        path
        for path in root.walk()
        if path.endswith(ENDINGS) and path not in named and not path.startswith(f"{PROOFS}/")
    ]
    return Arrived(tuple(found), series, (*ends, *(_unlisted(folder, path) for path in rest)))


def _missing(entry: Entry, where: str) -> Finding:
    return Finding(
        "missing-patch",
        f"series line {entry.line} names {entry.patch}, which is not there",
        Where(file=where, line=entry.line),
        expected=f"a file {entry.patch} beside the series file",
        found="nothing",
        next=f"add it, or take line {entry.line} out of the series",
    )


def _unlisted(folder: str, path: str) -> Finding:
    where = show_path(os.path.join(folder, path))
    return Finding(
        "unused",
        f"{path} is left out: no line of the series names it",
        Where(patch=path),
        next=f"patchkit import {where}, where it belongs to the series",
        note=True,
    )


# -- files ---------------------------------------------------------------------------------------
def _listed(folder: str) -> list[str]:
    names = sorted(
        name for name in os.listdir(folder) if name.endswith((*ENDINGS, ".eml", ".mbox"))
    )
    if not names:
        raise Refused(
            Finding(
                "missing-patch",
                f"{folder} holds no patch",
                Where(file=folder),
                expected="a series file, or files that end in .patch, .diff, .eml or .mbox",
                found="none of these",
            )
        )
    return [os.path.join(folder, name) for name in names]


def _files(paths: list[str], taken: list[str], home: str, chosen: str) -> Arrived:
    found: list[Incoming] = []
    notes: list[Finding] = []
    names: list[str] = []
    for path in paths:
        given = given_file(path, PATCH_LIMIT) if path != STDIN else _standard_input()
        commits = commits_of(split_lines(given))
        mails = commits or split_mails(given)
        alone = len(mails) == 1 and not (len(paths) > 1 and _is_mail(mails[0]))
        patches = [mail for mail in mails if alone or _DIFF.search(mail)]
        notes += [_cover(path, mail) for mail in mails if mail not in patches]
        for number, mail in enumerate(patches, 1):
            data, said = plain(mail, path)
            at_home = False
            stated, guard = _stated(data)
            if len(patches) == 1:
                at_home = os.path.dirname(os.path.realpath(path)) == home
                name = os.path.basename(path) if at_home else stated or _name_of(path, data, chosen)
            else:
                subject = parse_header(_head(data)).subject
                name = stated or free_name(from_subject(subject), taken)
                kind = "commit" if commits else "mail"
                said = (f"{kind} {number} of {len(patches)} in the file", *said)
            name = free_name(name, names)
            names.append(name)
            fixed = at_home or bool(stated)
            found.append(Incoming(name, data, path, guard=guard, said=said, fixed=fixed))
    return Arrived(tuple(found), None, tuple(notes))


def _standard_input() -> bytes:
    """What comes in a pipe. Raises Refused(too-large), UsageFault for a pipe that is empty."""
    data = sys.stdin.buffer.read(PATCH_LIMIT + 1)
    if len(data) > PATCH_LIMIT:
        raise Refused(
            Finding(
                "too-large",
                "more comes from standard input than a patch may have",
                expected=f"at most {PATCH_LIMIT} bytes",
                found="more",
                next="is it a patch? put it into a file and look",
            )
        )
    if not data.strip():
        raise UsageFault.because(
            "nothing came from standard input: did the command before the pipe fail?",
            next="put its output into a file first, and look",
        )
    return data


def _name_of(path: str, data: bytes, chosen: str) -> str:
    """The name that a lone patch gets by itself. Raises UsageFault where nothing gives one."""
    if path != STDIN:
        return from_file(path)
    subject = parse_header(_head(data)).subject
    if not subject and not chosen:
        raise UsageFault.because(
            "what comes from standard input is called nothing: it has no subject",
            next="patchkit import - --name NAME",
        )
    return from_subject(subject or chosen)


def _is_mail(data: bytes) -> bool:
    """Whether it can be a cover letter: it has the fields that a mail begins with."""
    header = parse_header(_head(data)[: 1 << 16])
    return header.shape == "mail" and bool(header.subject)


def split_mails(data: bytes) -> list[bytes]:
    """The mails of a file, each with its `From ` line; the file as it is where it holds no more
    than one."""
    lines = split_lines(data)
    starts = []
    for at, line in enumerate(lines):
        if not line.startswith(b"From "):
            continue
        after_blank = at == 0 or not lines[at - 1].strip()
        # A mail client's mark must follow a blank line; git's own cannot be anything else.
        if _GIT_MARK.match(line) or (after_blank and _MBOX_MARK.match(line)):
            starts.append(at)
    if len(starts) < 2:
        return [data]
    ends = [*starts[1:], len(lines)]
    first = b"".join(lines[: starts[0]])
    mails = [b"".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]
    return [first, *mails] if _DIFF.search(first) else mails


def plain(data: bytes, where: str) -> tuple[bytes, tuple[str, ...]]:
    """The patch as text that git reads: mails decoded, no byte order mark; and what was done.

    Raises Refused(encoded-mail) for base64 that is damaged.
    """
    said: list[str] = []
    if data.startswith(BOM):
        data = data.removeprefix(BOM)
        said.append("byte order mark taken away")
    parts = encoded_parts(split_lines(data))
    if parts:
        try:
            data = decode(data)
        except ValueError as error:
            raise Refused(
                Finding(
                    "encoded-mail",
                    f"the mail cannot be decoded: {error}",
                    Where(patch=os.path.basename(where), patch_line=parts[0].line + 1),
                    expected=f"a whole body in {parts[0].encoding}",
                    found="damaged",
                    next="get the mail again (as a raw message)",
                )
            ) from None
        said.append(" and ".join(dict.fromkeys(part.encoding for part in parts)) + " decoded")
    return data, tuple(said)


def _stated(data: bytes) -> tuple[str, str | None]:
    """The name and the guard that a mail of ours states: "" and None without, or where they are
    none that a series file can have."""
    header = parse_header(_head(data)[: 1 << 16])
    name, guard = header.first(NAME_FIELD), header.first(GUARD_FIELD)
    try:
        named = patch_name(name) == name
    except UsageFault:
        named = False
    return name if named else "", guard if _GUARD.fullmatch(guard) else None


def _head(data: bytes) -> bytes:
    found = _DIFF.search(data)
    return data[: found.start()] if found else data


def _cover(path: str, mail: bytes) -> Finding:
    subject = parse_header(mail[: 1 << 16]).subject
    return Finding(
        "no-diff",
        f"a mail without a diff is left out: {subject or 'no subject'}",
        Where(patch=os.path.basename(path)),
        note=True,
    )
