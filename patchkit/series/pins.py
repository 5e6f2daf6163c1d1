"""pins.toml: upstreams, pins and stacks, read and checked.

    [upstreams.vllm]                 kind, and git, pypi, package, root, source where they are known
    [pins."v0.30.0"]                 upstream, and commit or commit-prefix
    [pins."v0.30.0".files]           file name = "sha256:<64 hex digits>"
    [pins."v0.30.0".sources]         "<git address> <tag>" = commit id: of other projects, that a
                                     compiled build takes
    [stacks.default]                 guards = [names]

An unknown key is refused: a misspelt one would otherwise be a promise that nobody keeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.toml_lines import find_line, line_index, read_toml

MAX_BYTES = 1 << 18
MAX_LINE = 2000
"""Bytes of a line. The standard library's reader takes quadratic time for a long dotted key."""
MAX_TABLES = 2000
MAX_FAULTS = 50
"""Faults told in one run; the rest would only bury them."""
FILE = "pins.toml"
DEFAULT = "default"
"""The stack that holds the patches without a guard; it needs no table."""
RELATIVE = ("./", "../")
"""How a git address begins that is a path relative to pins.toml."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_+-]|\.(?!\.)){0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PREFIX = re.compile(r"[0-9a-f]{7,39}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_PACKAGE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,199}")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,99}")
_GUARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SCHEME = re.compile(r"(?:https?|ssh|git|file)://[^\s]+|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:]+")


@dataclass(frozen=True)
class Upstream:
    """A project that is patched.

    kind: which module of `upstreams/` knows it. git: address of its repository; a path that begins
    with ./ or ../ is relative to pins.toml. pypi: its name on
    the package index. package: its import name. root: folder of the tree that holds the package,
    "" for the top. source: where its bases come from when no `--source` says otherwise: "sdist",
    "git", or a folder relative to pins.toml in which `{pin}` stands for the pin's name; "" is the
    sdist.
    """

    name: str
    kind: str
    git: str = ""
    pypi: str = ""
    package: str = ""
    root: str = ""
    source: str = ""


@dataclass(frozen=True)
class Pin:
    """A release fixed to a commit id (or, incomplete, to a prefix of one) and to file digests.

    files: name of a sdist or wheel -> its sha256, 64 hex digits. sources: (address, tag) of another
    project that a compiled build takes -> the commit that the tag named when it was written.
    """

    name: str
    upstream: str
    commit: str = ""
    commit_prefix: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the whole commit id is known (else pin-incomplete)."""
        return bool(self.commit)

    def is_of(self, commit: str) -> bool:
        """Whether `commit` (7 to 40 hex digits) may be this pin's, as far as both are known."""
        own = self.commit or self.commit_prefix
        return bool(own) and (own.startswith(commit) or commit.startswith(own))


@dataclass(frozen=True)
class Stack:
    """A named set of guards. `default` has none."""

    name: str
    guards: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pins:
    """A whole pins.toml. `stacks` always holds `default`, whether or not the file does."""

    upstreams: Mapping[str, Upstream]
    pins: Mapping[str, Pin]
    stacks: Mapping[str, Stack]

    def pin(self, name: str) -> Pin:
        """The pin `name`; raises UsageFault with the nearest name where there is none."""
        if name in self.pins:
            return self.pins[name]
        raise UsageFault(_absent("pin", name, self.pins, "patchkit list"))

    def stack(self, name: str) -> Stack:
        """The stack `name`; raises UsageFault with the nearest name where there is none."""
        if name in self.stacks:
            return self.stacks[name]
        raise UsageFault(_absent("stack", name, self.stacks, "patchkit list"))

    def upstream_of(self, pin: Pin) -> Upstream:
        """The upstream of a pin of this file."""
        return self.upstreams[pin.upstream]


def load_pins(data: bytes, name: str = FILE) -> Pins:
    """Read pins.toml. Raises Refused(bad-pins) with the line, for every fault at once."""
    if len(data) > MAX_BYTES:
        fault = Finding("bad-pins", f"{name} is larger than {MAX_BYTES} bytes", Where(file=name))
        raise Refused(fault)
    for number, line in enumerate(data.split(b"\n"), 1):
        if len(line) > MAX_LINE:
            reason = f"{name} line {number}: longer than {MAX_LINE} bytes"
            raise Refused(Finding("bad-pins", reason, Where(file=name, line=number)))
    reader = _Reader(name, data, read_toml(data, name))
    pins = reader.all()
    if reader.findings:
        raise Refused(*reader.findings)
    return pins


class _Reader:
    """Reads the tables; collects what is wrong instead of stopping at the first fault."""

    def __init__(self, name: str, data: bytes, root: dict[str, Any]) -> None:
        self.name = name
        self.data = data
        self.root = root
        self.findings: list[Finding] = []
        self.lines: dict[tuple[str, ...], int] | None = None

    def all(self) -> Pins:
        self.known((), self.root, ("upstreams", "pins", "stacks"))
        upstreams = {n: self.upstream(n, t) for n, t in self.tables("upstreams")}
        pins = {n: self.pin(n, t, upstreams) for n, t in self.tables("pins")}
        stacks = {DEFAULT: Stack(DEFAULT)}
        stacks.update((n, self.stack(n, t)) for n, t in self.tables("stacks"))
        return Pins(upstreams, pins, dict(sorted(stacks.items())))

    def upstream(self, name: str, table: dict[str, Any]) -> Upstream:
        at = ("upstreams", name)
        self.known(at, table, ("kind", "git", "pypi", "package", "root", "source"))
        kind = self.text(at, table, "kind", _NAME.fullmatch, "the name of a kind", needed=True)
        git = self.text(at, table, "git", git_address, "a git address (https://, ssh://, file://)")
        pypi = self.text(at, table, "pypi", _PYPI.fullmatch, "a project name on the package index")
        package = self.text(at, table, "package", _PACKAGE.fullmatch, "an import name")
        root = self.text(at, table, "root", _folder, "a folder of the tree")
        source = self.text(
            at, table, "source", _source, "sdist, git, or a folder relative to this file"
        )
        root = "" if root == "." else root.rstrip("/")
        return Upstream(name, kind, git, pypi, package, root, source)

    def pin(self, name: str, table: dict[str, Any], upstreams: Mapping[str, Upstream]) -> Pin:
        at = ("pins", name)
        self.known(at, table, ("upstream", "commit", "commit-prefix", "files", "sources"))
        upstream = self.text(at, table, "upstream", None, "the name of an upstream", needed=True)
        if upstream and upstream not in upstreams:
            self.fault((*at, "upstream"), f"no upstream {upstream!r}", _near(upstream, upstreams))
        commit = self.text(at, table, "commit", _COMMIT.fullmatch, "40 hex digits, lower case")
        prefix = self.text(
            at, table, "commit-prefix", _PREFIX.fullmatch, "7 to 39 hex digits, lower case"
        )
        if commit and prefix:
            self.fault((*at, "commit-prefix"), "commit is known: commit-prefix says nothing more")
        files: dict[str, str] = {}
        for file in self.table((*at, "files"), table.get("files", {})):
            digest = self.text(
                (*at, "files"), table["files"], file, _DIGEST.fullmatch, '"sha256:" and 64 digits'
            )
            if not _FILE.fullmatch(file):
                self.fault((*at, "files", file), f"{file!r} is not the plain name of a file")
            files[file] = digest[len("sha256:") :]
        return Pin(name, upstream, commit, prefix, files, self.sources(at, table))

    def sources(self, at: tuple[str, ...], table: dict[str, Any]) -> dict[tuple[str, str], str]:
        at = (*at, "sources")
        found = {}
        for key in self.table(at, table.get("sources", {})):
            commit = self.text(at, table["sources"], key, _COMMIT.fullmatch, "40 hex digits")
            address, gap, tag = key.partition(" ")
            if not (gap and git_address(address) and _TAG.fullmatch(tag)):
                self.fault((*at, key), f"{key!r} is not a git address, a blank and a tag")
            found[address, tag] = commit
        return found

    def stack(self, name: str, table: dict[str, Any]) -> Stack:
        at = ("stacks", name)
        self.known(at, table, ("guards",))
        guards = table.get("guards", [])
        if not isinstance(guards, list) or not all(
            isinstance(g, str) and _GUARD.fullmatch(g) for g in guards
        ):
            self.fault((*at, "guards"), "guards must be a list of guard names")
            return Stack(name)
        if len(set(guards)) != len(guards):
            self.fault((*at, "guards"), "a guard is named twice")
        if name == DEFAULT and guards:
            self.fault((*at, "guards"), "the stack default is the patches without a guard")
        return Stack(name, tuple(guards))

    def tables(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """The tables [kind.NAME] in file order, those with an unusable name left out."""
        found = self.table((kind,), self.root.get(kind, {}))
        if len(found) > MAX_TABLES:
            self.fault((kind,), f"more than {MAX_TABLES} tables")
            return []
        out = []
        for name, table in found.items():
            if not usable_name(name):
                self.fault((kind, name), f"{name!r} cannot be a name (letters, digits, . _ + -)")
            else:
                out.append((name, self.table((kind, name), table)))
        return out

    def table(self, at: tuple[str, ...], value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.fault(at, f"{'.'.join(at)} must be a table")
        return {}

    def known(self, at: tuple[str, ...], table: dict[str, Any], keys: tuple[str, ...]) -> None:
        for key in table:
            if key not in keys:
                where = f"[{'.'.join(at)}]" if at else "the file"
                self.fault((*at, key), f"{where} has an unknown key {key!r}", _near(key, keys))

    def text(
        self,
        at: tuple[str, ...],
        table: dict[str, Any],
        key: str,
        good: Callable[[str], object] | None,
        what: str,
        needed: bool = False,
    ) -> str:
        value = table.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (good is not None and not good(value)):
            found = "nothing" if value is None else repr(value)[:120]
            message = f"[{'.'.join(at)}] {key} must be {what}"
            self.fault((*at, key) if key in table else at, message, found=found)
            return ""
        return value

    def fault(self, at: tuple[str, ...], message: str, hint: str = "", found: str = "") -> None:
        if self.lines is None:
            self.lines = line_index(self.data)
        line = find_line(self.lines, at)
        self.findings.append(
            Finding(
                "bad-pins",
                f"{self.name} line {line}: {message}" if line else f"{self.name}: {message}",
                Where(file=self.name, line=line),
                found=found,
                next=hint,
            )
        )
        if len(self.findings) == MAX_FAULTS:
            raise Refused(*self.findings)


def usable_name(text: str) -> bool:
    """Whether an upstream, a pin or a stack may be called so."""
    return bool(_NAME.fullmatch(text)) and not text.endswith((".", ".lock"))


def git_address(text: str) -> bool:
    """Addresses that git cannot take for an option, a local command or a remote helper.

    `ext::sh -c …` and `--upload-pack=…` are known ways from an address to a command.
    """
    if text.startswith(("/", *RELATIVE)):
        return not any(c in text for c in "\n\r\0") and "::" not in text
    return bool(_SCHEME.fullmatch(text)) and "::" not in text and "://-" not in text


def _folder(text: str) -> bool:
    return text in ("", ".") or unsafe(text.rstrip("/")) is None


def _source(text: str) -> bool:
    """A folder beside or above the project is a usual place; an absolute one is on one machine."""
    return bool(text) and text.isprintable() and not text.startswith(("/", "\\", "-", "~"))


def _near(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), 3)
    if close:
        return f"did you mean {' or '.join(map(repr, sorted(close)))}?"
    return f"known: {', '.join(sorted(known)[:20])}" if known else "none is defined"


def _absent(kind: str, name: str, known: Mapping[str, Any], command: str) -> Finding:
    return Finding(
        "bad-pins",
        f"{FILE} has no {kind} {name!r}; {_near(name, known)}",
        Where(file=FILE),
        expected=f"a [{kind}s.…] table",
        found=name,
        next=command,
    )
