"""`init`: a project of one's own: pins.toml, an empty series with its lock, and what git and CI
need."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.authoring.sealing import Ready, sealed, write_files, writing
from patchkit.derive.base import Bases
from patchkit.derive.project import JOURNAL, Project, rooted
from patchkit.engine.model import File
from patchkit.errors import EnvironmentFault, Finding, Refused, UsageFault, Where
from patchkit.files.atomic import make_folder
from patchkit.files.lock import folder_locked
from patchkit.files.root import Root
from patchkit.files.transaction import pending, recover
from patchkit.series.folder import Series
from patchkit.series.pins import FILE, RELATIVE, Pin, Pins, Upstream, load_pins
from patchkit.series.pins_edit import add_pin, add_upstream
from patchkit.series.quilt import parse_series
from patchkit.source import Progress, silent
from patchkit.source.folder import checked_out
from patchkit.store.address import blotted
from patchkit.store.repo import Store
from patchkit.upstreams import usual
from patchkit.upstreams.base import KINDS

WORKFLOW = ".github/workflows/patchkit.yml"
ATTRIBUTES = ("# Patches are bytes: git must never touch their line ends.", "*.patch -text",
              "series/** -text")  # fmt: skip
IGNORED = ("/build/", "/.patchkit/")
_HEAD = "# The upstream, and the releases of it that are pinned. Stacks of guards: [stacks.NAME].\n"
_VERSION = re.compile(r"v?(\d[A-Za-z0-9.+!]*)")


@dataclass(frozen=True)
class Asked:
    """What the command line says of the new project."""

    upstream: str
    pin: str | None = None
    kind: str | None = None
    git: str | None = None
    pypi: str | None = None
    package: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Started:
    """A project that was begun. written: its files. pin: None where none was asked for."""

    folder: Path
    pin: str | None
    written: tuple[str, ...]
    findings: tuple[Finding, ...]
    ready: Ready | None = None


def start(
    at: str | os.PathLike[str], asked: Asked, *, progress: Progress = silent, dry: bool = False
) -> Started:
    """Begin a project in the folder `at` (made where it is missing). All or nothing.

    Raises Refused(target-exists) where it is one already, EnvironmentFault(network) where the
    release must be asked for and no index answers, UsageFault.
    """
    folder = Path(os.path.abspath(at))
    if not dry and pending(folder / JOURNAL):
        # Of an init that was killed: what it left looks like a project.
        with folder_locked(folder):
            recover(Root(folder), folder / JOURNAL)
    _refuse_project(folder)
    upstream = _upstream(folder, asked)
    reached = rooted(Pins({upstream.name: upstream}, {}, {}), folder).upstreams[upstream.name]
    with Store.open() as store:
        findings: list[Finding] = []
        pin = _pin(store, folder, reached, asked, findings)
        data = _pins(upstream, pin)
        ready = None
        files: dict[str, File | None] = {FILE: File(data)}
        if pin is not None:
            project = Project(folder, rooted(load_pins(data), folder))
            bases = Bases(project, store, progress=progress)
            base = bases.get(pin)
            if not pin.commit and base.commit:
                # No tag could be asked: what the source says of itself is a prefix of the commit.
                pin = replace(pin, commit_prefix=base.commit)
                data = _pins(upstream, pin)
                files[FILE] = File(data)
                project = Project(folder, rooted(load_pins(data), folder))
            findings += base.gaps
            ready = sealed(project, pin, store, base, _empty(pin))
        if dry:
            names = sorted({**files, **_around(folder)})
            return Started(folder, pin.name if pin else None, tuple(names), tuple(findings))
        make_folder(folder)
        project = Project(folder, rooted(load_pins(data), folder))
        with writing(project):
            _refuse_project(folder)
            changes = {**files, **_around(folder), **(ready.files if ready is not None else {})}
            written = write_files(project, changes, "init")
    return Started(folder, pin.name if pin else None, tuple(written), tuple(findings), ready)


def _refuse_project(folder: Path) -> None:
    if (folder / FILE).exists():
        raise Refused(
            Finding(
                "target-exists",
                f"{folder} is a project already",
                Where(file=str(folder / FILE)),
                expected=f"a folder without a {FILE}",
                next="patchkit new NAME begins a patch there; patchkit pin RELEASE --add, "
                "another release",
            )
        )


def _empty(pin: Pin) -> Series:
    words = f"# {pin.upstream} {pin.name}: one idea a patch; the order is this file's.\n"
    return Series(pin.name, parse_series(words.encode()), (), (), ())


def _upstream(folder: Path, asked: Asked) -> Upstream:
    known = usual(asked.upstream)
    if known is None:
        known = Upstream(asked.upstream, "plain")
    out = replace(
        known,
        kind=asked.kind or known.kind,
        git=_git(folder, asked.git) if asked.git else known.git,
        pypi=asked.pypi or known.pypi,
        package=asked.package or known.package,
    )
    if out.kind not in KINDS:
        raise UsageFault.because(
            f"--kind {out.kind}: there is no such kind", next=f"--kind {' or '.join(sorted(KINDS))}"
        )
    source = asked.source or ""
    if source and source not in ("sdist", "git"):
        where = os.path.abspath(source)
        if not os.path.isdir(where):
            raise UsageFault.because(
                f"--source {source}: there is no such folder", next="--source sdist, git or DIR"
            )
        # Written relative to the project, so that it is right in every clone beside its source.
        source = Path(os.path.relpath(where, folder)).as_posix()
    if not source and not out.pypi:
        if out.git:
            source = "git"
        else:
            out = replace(out, pypi=out.name)
    return replace(out, source=source)


def _git(folder: Path, address: str) -> str:
    """The address as pins.toml has it: a relative path is one from there."""
    if not address.startswith(RELATIVE):
        return address
    path = Path(os.path.relpath(os.path.abspath(address), folder)).as_posix()
    return path if path.startswith("../") else f"./{path}"


def _pin(
    store: Store, folder: Path, upstream: Upstream, asked: Asked, findings: list[Finding]
) -> Pin | None:
    """The pin that is asked for, with what can be found out about it."""
    if upstream.source not in ("", "sdist", "git"):
        at = os.path.normpath(os.path.join(folder, upstream.source))
        head = checked_out(store, at, asked.pin or "")
        if head is None:
            return Pin(asked.pin or "base", upstream.name)
        name = asked.pin or next(iter(head.tags), "base")
        if asked.pin and not head.is_tag:
            findings.append(_not_the_tag(asked.pin, at, head.commit))
        return Pin(name, upstream.name, head.commit)
    if asked.pin is None:
        return None
    commit = _tag(store, upstream, asked.pin, findings)
    files: Mapping[str, str] = {}
    if upstream.source != "git":
        from patchkit.source.release import release_of

        version = _VERSION.fullmatch(asked.pin)
        release = release_of(upstream, version[1] if version else asked.pin)
        files = release.files
        findings.extend(release.notes)
    return Pin(asked.pin, upstream.name, commit, "", files)


def _tag(store: Store, upstream: Upstream, tag: str, findings: list[Finding]) -> str:
    if not upstream.git:
        return ""
    from patchkit.source.release import tag_commit

    try:
        commit = tag_commit(store, upstream, tag)
    except EnvironmentFault as fault:
        if upstream.source == "git":
            raise
        findings.extend(f.as_note() for f in fault.findings)
        return ""
    if not commit and upstream.source == "git":
        raise Refused(
            Finding(
                "pin-incomplete",
                f"{blotted(upstream.git)} has no tag {tag}",
                expected=f"a tag {tag}",
                found="none",
                next="--pin with the name of a tag",
            )
        )
    return commit


def _not_the_tag(name: str, at: str, commit: str) -> Finding:
    return Finding(
        "pin-incomplete",
        f"{at} has no tag {name}: the pin is the commit that is checked out, {commit[:12]}",
        note=True,
    )


def _pins(upstream: Upstream, pin: Pin | None) -> bytes:
    data = add_upstream(_HEAD.encode(), upstream)
    if pin is not None:
        data = add_pin(data, pin)
    return data


def _around(folder: Path) -> dict[str, File | None]:
    """What git and CI need; files that are there are added to, never replaced."""
    root = Root(folder)
    files: dict[str, File | None] = {}
    for name, lines in ((".gitattributes", ATTRIBUTES), (".gitignore", IGNORED)):
        old = root.get(name) if folder.is_dir() else None
        text = old.data.decode("utf-8", "surrogateescape") if old is not None else ""
        have = set(text.split("\n"))
        new = [line for line in lines if line not in have]
        if new:
            lead = text if not text or text.endswith("\n") else f"{text}\n"
            body = lead + "".join(f"{line}\n" for line in new)
            files[name] = File(body.encode("utf-8", "surrogateescape"))
    if not folder.is_dir() or root.stat(WORKFLOW) is None:
        files[WORKFLOW] = File(_WORKFLOW.encode())
    return files


_WORKFLOW = """\
# Applies every series again in memory and compares it with its lock; fails on any drift.
name: patches
on:
  push:
  pull_request:
  schedule:
    - cron: "17 4 * * 1"
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: python -m pip install patchkit
      - run: patchkit lint
      - run: patchkit check
"""
