"""series.lock as JSON: sorted keys, one path a line, so that a diff of it can be reviewed.

Reading takes hostile input: bounded, every type checked, each refusal a bad-lock with its place.
Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where, unreadable
from patchkit.series.lockfile import BASE, FILE, FORMAT, Blob, Chain, Lock, LockedPin, Step

MAX_BYTES = 64 << 20
_OID = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{7,39}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_MODES = {"100644": 0o100644, "100755": 0o100755, "120000": 0o120000, "160000": 0o160000}
_NEXT = "patchkit lock"


def dumps(lock: Lock) -> bytes:
    """The lock's bytes: ASCII, LF, the same for the same lock."""
    pin: dict[str, Any] = {"files": dict(lock.pin.files), "name": lock.pin.name}
    pin["upstream"] = lock.pin.upstream
    if lock.pin.commit:
        pin["commit"] = lock.pin.commit
    if lock.pin.commit_prefix:
        pin["commit-prefix"] = lock.pin.commit_prefix
    document = {
        "entries": lock.entries,
        "format": FORMAT,
        "patches": [list(p) for p in lock.patches],
        "pin": pin,
        "proofs": dict(lock.proofs),
        "series": _chain_out(lock.series),
        "stacks": {name: _chain_out(chain) for name, chain in lock.stacks.items()},
    }
    return (_text(document, 0) + "\n").encode("ascii")


def loads(data: bytes, name: str = FILE) -> Lock:
    """Read a lock. Raises Refused(bad-lock) with the place in the document."""
    if len(data) > MAX_BYTES:
        raise _bad(name, "", f"larger than {MAX_BYTES} bytes")
    if b"<<<<<<<" in data:
        raise _bad(name, "", "an unresolved merge conflict stands in it")
    try:
        document = json.loads(data.decode("ascii"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise _bad(name, "", "not ASCII") from None
    except json.JSONDecodeError as error:
        raise _bad(name, f"line {error.lineno}", unreadable(error)) from None
    except RecursionError:
        raise _bad(name, "", "nested too deep") from None
    except ValueError as error:
        raise _bad(name, "", unreadable(error)[:200]) from None
    return _Reader(name).lock(document)


def _chain_out(chain: Chain) -> dict[str, Any]:
    steps = (BASE, *chain.patches)
    return {
        "patches": list(chain.patches),
        "paths": {
            path: [[s.patch, None if s.blob is None else str(s.blob)] for s in states]
            for path, states in chain.paths.items()
        },
        "trees": {
            source: [[patch, oid] for patch, oid in zip(steps, ids)]  # noqa: B905
            for source, ids in chain.trees.items()
        },
    }


def _text(value: Any, depth: int, rows: bool = False) -> str:
    """JSON with a member or an item a line; with `rows` each member's value stays on its line."""
    pad, end = "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, dict) and value:
        members = [
            f"{pad}{json.dumps(key)}: "
            + (json.dumps(value[key]) if rows else _text(value[key], depth + 1, key == "paths"))
            for key in sorted(value)
        ]
        return "{\n" + ",\n".join(members) + end + "}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(pad + json.dumps(item) for item in value) + end + "]"
    return json.dumps(value)


class _Reader:
    """Turns the document into a Lock, checking every value on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Most of it stands in the chains of several stacks, word for word.
        self.blobs: dict[str, Blob] = {}
        self.rows: dict[str, tuple[Any, tuple[Step, ...]]] = {}

    def lock(self, document: Any) -> Lock:
        keys = ("entries", "format", "patches", "pin", "proofs", "series", "stacks")
        root = self.members("", document, keys)
        if root["format"] != FORMAT or isinstance(root["format"], bool):
            self.refuse("format", f"this patchkit reads format {FORMAT}")
        patches = self.pairs("patches", root["patches"])
        for index, (patch, digest) in enumerate(patches):
            self.check(f"patches[{index}]", digest, _SHA256, "a sha256")
            self.path(f"patches[{index}]", patch)
        names = tuple(patch for patch, _ in patches)
        if len(set(names)) != len(names):
            self.refuse("patches", "a patch is listed twice")
        series = self.chain("series", root["series"], names)
        if series.patches != names:
            self.refuse("series.patches", "not the patches of the lock, in order")
        stacks = self.table("stacks", root["stacks"])
        return Lock(
            self.pin(root["pin"]),
            self.check("entries", root["entries"], _SHA256, "a sha256"),
            patches,
            self.digests("proofs", root["proofs"], self.path),
            series,
            {n: self.chain(f"stacks.{n}", value, names) for n, value in stacks.items()},
        )

    def pin(self, value: Any) -> LockedPin:
        table = self.members(
            "pin", value, ("files", "name", "upstream"), ("commit", "commit-prefix")
        )
        commit, prefix = table.get("commit", ""), table.get("commit-prefix", "")
        if commit != "":
            self.check("pin.commit", commit, _OID, "a commit id")
        if prefix != "":
            self.check("pin.commit-prefix", prefix, _PREFIX, "the start of a commit id")
        for key in ("name", "upstream"):
            self.check(f"pin.{key}", table[key], _WORD, "a name")
        files = self.digests("pin.files", table["files"], self.path)
        return LockedPin(table["name"], table["upstream"], commit, prefix, files)

    def chain(self, at: str, value: Any, order: tuple[str, ...]) -> Chain:
        table = self.members(at, value, ("patches", "paths", "trees"))
        patches = self.strings(f"{at}.patches", table["patches"])
        left = iter(order)
        if not all(patch in left for patch in patches):
            self.refuse(f"{at}.patches", "not some of the lock's patches, in their order")
        steps = (BASE, *patches)
        trees = {}
        for source, rows in self.table(f"{at}.trees", table["trees"]).items():
            pairs = self.pairs(f"{at}.trees.{source}", rows)
            if tuple(patch for patch, _ in pairs) != steps:
                self.refuse(f"{at}.trees.{source}", "needs one tree id at the base and a patch")
            for _, oid in pairs:
                self.check(f"{at}.trees.{source}", oid, _OID, "a tree id")
            trees[source] = tuple(oid for _, oid in pairs)
        rank = {patch: index for index, patch in enumerate(steps)}
        paths = {}
        for path, rows in self.table(f"{at}.paths", table["paths"]).items():
            before, known = self.rows.get(path, (None, ()))
            if before != rows or not all(step.patch in rank for step in known):
                place = f"{at}.paths.{path}"
                self.path(place, path)
                known = self.states(place, rows, rank)
                self.rows[path] = (rows, known)
            paths[path] = known
        return Chain(patches, trees, paths)

    def states(self, at: str, value: Any, rank: Mapping[str, int]) -> tuple[Step, ...]:
        if not isinstance(value, list) or len(value) < 2:
            self.refuse(at, "needs the base and at least one patch")
        steps: list[Step] = []
        last = -1
        for row in value:
            if not isinstance(row, list) or len(row) != 2:
                self.refuse(at, "a state is a pair: patch, and mode with blob id or null")
            patch, blob = row
            if not isinstance(patch, str) or rank.get(patch, -1) <= last:
                self.refuse(at, "the base comes first, then patches of the chain in order")
            if last == -1 and patch != BASE:
                self.refuse(at, "the base is missing")
            last = rank[patch]
            steps.append(Step(patch, self.blob(at, blob)))
        if any(a.blob == b.blob for a, b in zip(steps, steps[1:])):  # noqa: B905, RUF007
            self.refuse(at, "a patch is listed that changes nothing")
        return tuple(steps)

    def blob(self, at: str, value: Any) -> Blob | None:
        if value is None:
            return None
        known = self.blobs.get(value) if isinstance(value, str) else None
        if known is not None:
            return known
        mode, _, oid = value.partition(" ") if isinstance(value, str) else ("", "", "")
        if mode not in _MODES or not _OID.fullmatch(oid):
            self.refuse(at, f"no mode and blob id: {value!r:.80}")
        blob = self.blobs[value] = Blob(_MODES[mode], oid)
        return blob

    def digests(self, at: str, value: Any, key: Callable[[str, str], str]) -> dict[str, str]:
        table = self.table(at, value)
        for name, digest in table.items():
            key(at, name)
            self.check(f"{at}.{name}", digest, _SHA256, "a sha256")
        return table

    def members(
        self, at: str, value: Any, needed: tuple[str, ...], more: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        table = self.table(at, value)
        for key in needed:
            if key not in table:
                self.refuse(at, f"{key!r} is missing")
        for key in table:
            if key not in needed and key not in more:
                self.refuse(at, f"unknown key {key!r:.80}")
        return table

    def table(self, at: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.refuse(at, "must be an object")
        return value

    def strings(self, at: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(at, "must be a list of strings")
        return tuple(value)

    def pairs(self, at: str, value: Any) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, list):
            self.refuse(at, "must be a list of pairs")
        out = []
        for row in value:
            pair = self.strings(at, row)
            if len(pair) != 2:
                self.refuse(at, "must be a list of pairs")
            out.append((pair[0], pair[1]))
        return tuple(out)

    def check(self, at: str, value: Any, pattern: re.Pattern[str], what: str) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.refuse(at, f"not {what}: {value!r:.80}")
        return value

    def path(self, at: str, path: str) -> str:
        reason = unsafe(path)
        if reason is not None:
            self.refuse(at, f"a path that may not be used ({reason}): {path!r:.80}")
        return path

    def refuse(self, at: str, reason: str) -> NoReturn:
        raise _bad(self.name, at, reason)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are unique: of two equal keys, readers pick different ones."""
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key!r:.80} stands twice in one object")
        out[key] = value
    return out


def _bad(name: str, at: str, reason: str) -> Refused:
    return Refused(
        Finding(
            "bad-lock",
            f"{name}: {at}: {reason}" if at else f"{name}: {reason}",
            Where(file=name),
            expected="a lock that patchkit wrote",
            found=reason,
            next=_NEXT,
        )
    )
