"""What was done to an installed package: `<dist-info>/patchkit.json`, described in
docs/patchkit-json.md.

The same schema stands in a wheel that patchkit built (made_by = build) and beside a package that
it patched in place (made_by = in-place). It holds the lock's excerpt for what was applied, the
patches themselves, and what taking them back needs besides: the old rows of RECORD, permission
bits, and the old bytes of files that the patches alone do not give back.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from patchkit.engine.model import EXECUTABLE, REGULAR, File, Patch, Section
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.series.lockfile import Chain, Lock
from patchkit.series.lockjson import dumps, loads

FORMAT = 1
IN_PLACE = "in-place"
BUILD = "build"
SERIES = "series"
LOOSE = "loose"
EXPANDED = 256 << 20
"""Bytes that one compressed part may take when it is expanded."""

Rows = Mapping[str, Sequence[tuple[int, str]]]


@dataclass(frozen=True)
class Recorded:
    """One applied patch.

    data: the patch file. strip, directory, reverse: how it was read. sections: the numbers (from
    0) of its file sections that were applied; the others are for files that the package lacks.
    None where all of the patch was there already, so that nothing of it is taken back.
    starts: for each section with hunks, in the order in which they were applied, the path that it
    left and the 0-based line at which each hunk's result stands there.
    """

    name: str
    sha256: str
    data: bytes
    strip: int = 1
    directory: str = ""
    reverse: bool = False
    sections: tuple[int, ...] = ()
    starts: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def cut(self) -> Patch:
        """The patch with its applied sections only. Raises Refused where it is damaged."""
        from patchkit.engine.parse import parse  # checking needs no parser

        patch = parse(self.data, self.name)
        if patch.sha256 != self.sha256 or any(n >= len(patch.sections) for n in self.sections):
            raise ValueError(f"{self.name} is not the patch that was applied")
        return replace(patch, sections=tuple(patch.sections[n] for n in self.sections))

    def others(self) -> tuple[Section, ...]:
        """Its file sections that were not applied. Raises Refused where it is damaged."""
        from patchkit.engine.parse import parse

        sections = parse(self.data, self.name).sections
        return tuple(s for n, s in enumerate(sections) if n not in self.sections)


@dataclass(frozen=True)
class State:
    """The whole record.

    made_by: IN_PLACE or BUILD. kind: SERIES (of a pin) or LOOSE. stack: its name, None for the
    whole series or loose patches. lock: an excerpt: the pin, and as its `series` the chain of
    what was applied, for the package's own paths. package: import name, "" for loose patches.
    root: folder of the tree that holds the package. exclude: patterns that were given. left_out:
    tree paths that were left out. record_sha256, record: RECORD before, see
    `record_csv.restored`. modes: permission bits of what is not there now or not as it was.
    kept: files before, where the patches do not give them back (None: there was none).
    """

    made_by: str
    kind: str
    stack: str | None
    lock: Lock
    package: str = ""
    root: str = ""
    exclude: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    patches: tuple[Recorded, ...] = ()
    record_sha256: str = ""
    record: Rows = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, File | None] = field(default_factory=dict)

    @property
    def chain(self) -> Chain:
        """What was applied, path by path."""
        return self.lock.series

    @property
    def digest(self) -> str:
        """The series digest, see `series_digest`."""
        return series_digest(self.lock, self.chain.patches)

    def site_path(self, path: str) -> str:
        """A tree path as it is below the site folder."""
        return path.removeprefix(f"{self.root}/") if self.root else path


def series_digest(lock: Lock, patches: Sequence[str]) -> str:
    """One sha256 for a sequence of patches: of `sha256  name` lines, as sha256sum prints them."""
    digests = dict(lock.patches)
    lines = "".join(f"{digests[name]}  {name}\n" for name in patches)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def excerpt(lock: Lock, chain: Chain, paths: Sequence[str]) -> Lock:
    """The part of a lock that speaks of one chain and of `paths`."""
    kept = {path: chain.paths[path] for path in paths if path in chain.paths}
    names = set(chain.patches)
    return Lock(
        lock.pin,
        lock.entries,
        tuple(row for row in lock.patches if row[0] in names),
        {},
        Chain(chain.patches, {}, kept),
        {},
    )


def dump_state(state: State) -> bytes:
    """The state as JSON: ASCII, sorted keys, the same bytes for the same state."""
    body = {
        "format": FORMAT,
        "made_by": state.made_by,
        "kind": state.kind,
        "stack": state.stack,
        "series": state.digest,
        "lock": json.loads(dumps(state.lock)),
        "package": state.package,
        "root": state.root,
        "exclude": list(state.exclude),
        "left_out": list(state.left_out),
        "patches": [_patch_out(patch) for patch in state.patches],
        "record": {
            "sha256": state.record_sha256,
            "rows": {p: [list(r) for r in rows] for p, rows in state.record.items()},
        },
        "modes": {path: f"{mode:o}" for path, mode in state.modes.items()},
        "kept": {
            path: None if f is None else [f"{f.mode:o}", pack(f.data)]
            for path, f in state.kept.items()
        },
    }
    return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode("ascii")


def load_state(data: bytes, where: str, again: str = "") -> State:
    """Read a state. where: its path, for messages. again: the command that installs the package
    again. Raises Refused(journal)."""
    try:
        body = json.loads(data)
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise ValueError(f"not of format {FORMAT}")
        state = _state(body)
        if body["series"] != state.digest:
            raise ValueError("the series digest is not that of the patches")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(_damaged(where, str(error) or type(error).__name__, again)) from None
    except PatchkitError as error:
        raise Refused(_damaged(where, error.findings[0].message, again)) from None
    return state


def pack(data: bytes) -> str:
    """Bytes as text: compressed, base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def unpack(text: str) -> bytes:
    """What `pack` took. Raises ValueError."""
    expander = zlib.decompressobj()
    try:
        data = expander.decompress(base64.b64decode(text, validate=True), EXPANDED)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not expander.eof:
        raise ValueError("a compressed part is damaged or too large")
    return data


def _patch_out(patch: Recorded) -> dict[str, Any]:
    return {
        "name": patch.name,
        "sha256": patch.sha256,
        "strip": patch.strip,
        "directory": patch.directory,
        "reverse": patch.reverse,
        "sections": list(patch.sections),
        "starts": [[path, list(starts)] for path, starts in patch.starts],
        "zlib": pack(patch.data),
    }


def _state(body: dict[str, Any]) -> State:
    made_by, kind, stack = body["made_by"], body["kind"], body["stack"]
    if made_by not in (IN_PLACE, BUILD) or kind not in (SERIES, LOOSE):
        raise ValueError("made_by or kind is unknown")
    if stack is not None:
        _text(stack)
    lock = loads(json.dumps(body["lock"]).encode("ascii"), "lock")
    record = body["record"]
    rows = {
        _path(path): [(_number(place), _text(raw)) for place, raw in rows]
        for path, rows in record["rows"].items()
    }
    if made_by == IN_PLACE and len(_text(record["sha256"])) != 64:
        raise ValueError("the digest of RECORD is missing")
    return State(
        made_by,
        kind,
        stack,
        lock,
        _text(body["package"]),
        _folder(body["root"]),
        _texts(body["exclude"]),
        _texts(body["left_out"]),
        tuple(_patch_in(patch) for patch in body["patches"]),
        _text(record["sha256"]),
        rows,
        {_path(path): _mode(mode, 0o777) for path, mode in body["modes"].items()},
        {_path(path): _file(kept) for path, kept in body["kept"].items()},
    )


def _patch_in(body: Mapping[str, Any]) -> Recorded:
    if not isinstance(body["reverse"], bool):
        raise ValueError("reverse is not true or false")
    starts = tuple(
        (_path(path), tuple(_number(n) for n in numbers)) for path, numbers in body["starts"]
    )
    return Recorded(
        _text(body["name"]),
        _text(body["sha256"]),
        unpack(_text(body["zlib"])),
        _number(body["strip"]),
        _folder(body["directory"]),
        body["reverse"],
        tuple(_number(n) for n in body["sections"]),
        starts,
    )


def _file(kept: Any) -> File | None:
    if kept is None:
        return None
    mode, data = kept
    git = int(_text(mode), 8)
    if git not in (REGULAR, EXECUTABLE):
        raise ValueError("not a mode of a file")
    return File(unpack(_text(data)), git)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is not a string")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("a list is not a list")
    return tuple(_text(item) for item in value)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a number is not a natural number")
    return value


def _mode(value: Any, limit: int) -> int:
    mode = int(_text(value), 8)
    if not 0 <= mode <= limit:
        raise ValueError("not permission bits")
    return mode


def _path(value: Any) -> str:
    reason = unsafe(_text(value))
    if reason is not None:
        raise ValueError(f"a path may not be used: {reason}")
    return str(value)


def _folder(value: Any) -> str:
    return _path(value) if value != "" else ""


def _damaged(where: str, reason: str, again: str) -> Finding:
    return Finding(
        "journal",
        f"the record of what was applied cannot be read: {reason}",
        Where(file=where),
        expected=f"a record of format {FORMAT} that patchkit wrote",
        next=again or "install the package again",
    )
