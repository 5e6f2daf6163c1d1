"""What came back from a machine with a GPU: checked, and filed beside the proof."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from patchkit.derive.proof_text import files_of
from patchkit.derive.records import (
    MACHINE,
    Payload,
    parse_record,
    payload_digest,
    record_path,
    written_record,
)
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import make_folder, write_file
from patchkit.prove.prove import Target
from patchkit.store.repo import Store

KEPT = ("notes",)
"""What people wrote into a record: it stays when a new run takes the record's place."""


def file_results(
    data: bytes, name: str, store: Store, targets: Sequence[Target], pin: str, folder: Path
) -> tuple[list[Path], list[Finding]]:
    """File every patch of a result (what pk_run.py wrote) as a record; the paths, and what is
    wrong with the others.

    targets: each patch with its proof, and the trees directly before and after it. A result of
    other trees is taken where every file that it used is the same in these.
    Raises Refused(bad-record) where the file is no result at all.
    """
    body = _result(data, name, pin)
    known = {target.proof.patch: target for target in targets}
    filed: list[Path] = []
    wrong: list[Finding] = []
    for patch, ran in sorted(body["patches"].items()):
        if patch not in known:
            wrong.append(_bad(name, patch, "a patch of the series that has a proof", "none"))
            continue
        found = list(_faults(name, store, known[patch], ran))
        if found:
            wrong += found
            continue
        place = record_path(folder, patch)
        record = _record(store, known[patch], body, ran, pin)
        record.update(_written_by_people(place))
        text = written_record(record)
        try:
            parse_record(text, f"the result of {patch} in {name}")
        except Refused as refusal:
            wrong += refusal.findings
            continue
        make_folder(str(place.parent))
        write_file(str(place), text)
        filed.append(place)
    return filed, wrong


def _result(data: bytes, name: str, pin: str) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(_bad(name, None, "JSON", str(error))) from error
    if not isinstance(body, dict) or not isinstance(body.get("patches"), dict):
        raise Refused(_bad(name, None, "a result of an exported run.sh", "no patches in it"))
    if body.get("format") != 1 or body.get("pin") != pin:
        found = f"format {body.get('format')}, pin {body.get('pin')}"
        raise Refused(_bad(name, None, f"format 1, pin {pin}", found))
    missing = [key for key in MACHINE if not body.get(key)]
    if missing:
        raise Refused(_bad(name, None, ", ".join(MACHINE), f"nothing for {', '.join(missing)}"))
    return body


def _bad(name: str, patch: str | None, expected: str, found: str) -> Finding:
    return Finding(
        "bad-record",
        f"{name} holds no result{f' of {patch}' if patch else ''} that can be filed",
        Where(patch=patch, file=name),
        expected=expected,
        found=found,
        next="patchkit prove --gpu --export DIR, and run run.sh there again",
    )


def _faults(name: str, store: Store, target: Target, ran: Mapping[str, Any]) -> Iterator[Finding]:
    patch = target.proof.patch
    if ran.get("proof_sha256") != target.proof.sha256:
        found = str(ran.get("proof_sha256"))
        yield _bad(name, patch, f"the proof as it is now: {target.proof.sha256}", found)
    for half in ("red", "green"):
        tests = ran.get(half, {}).get("tests")
        if not tests:
            errors = "; ".join(map(str, ran.get(half, {}).get("errors", ())))
            yield _bad(name, patch, f"the {half} half", errors[-300:] or "none")
    trees = ran.get("trees")
    if not isinstance(trees, dict) or not {"before", "after"} <= trees.keys():
        yield _bad(name, patch, "the ids of the trees before and after", repr(trees))
        return
    for which, oid in (("before", target.before), ("after", target.after)):
        if trees[which] == oid:
            continue
        if not store.has(trees[which]):
            yield _bad(name, patch, f"tree {oid} {which} the patch", str(trees[which]))
            continue
        theirs, ours = store.tree(trees[which]), store.tree(oid)
        other = [p for p in _used(ran) if theirs.listed(p) != ours.listed(p)]
        if other:
            yield _bad(name, patch, f"the files it used as in tree {oid}", ", ".join(other[:6]))


def _used(ran: Mapping[str, Any]) -> list[str]:
    """Paths that either half used, and those that the patch changes."""
    halves = [ran.get(half, {}).get("used", []) for half in ("red", "green")]
    return sorted({*halves[0], *halves[1], *ran.get("changes", [])})


def _payload(store: Store, target: Target, ran: Mapping[str, Any]) -> Payload:
    before, after = store.tree(target.before), store.tree(target.after)
    out = {}
    for path in _used(ran):
        ids = tuple(
            found.oid if (found := tree.listed(path)) is not None else ""
            for tree in (before, after)
        )
        if any(ids):  # generated files are in no tree: the pin fixes them
            out[path] = (ids[0], ids[1])
    return out


def _record(
    store: Store, target: Target, body: Mapping[str, Any], ran: Mapping[str, Any], pin: str
) -> dict[str, Any]:
    payload = _payload(store, target, ran)
    halves = {
        half: {key: ran[half][key] for key in ("tests", "measured", "summary") if key in ran[half]}
        for half in ("red", "green")
    }
    return {
        "format": 1,
        "patch": target.proof.patch,
        "pin": pin,
        "proof_sha256": target.proof.sha256,
        "proof_files": sorted(files_of(target.proof.module)),
        "trees": ran["trees"],
        "payload": {path: list(ids) for path, ids in payload.items()},
        "payload_sha256": payload_digest(target.proof.sha256, payload),
        **{key: body[key] for key in (*MACHINE, "cuda", "python") if body.get(key)},
        **halves,
    }


def _written_by_people(place: Path) -> dict[str, Any]:
    try:
        body = json.loads(place.read_bytes()) if place.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: body[key] for key in KEPT if key in body} if isinstance(body, dict) else {}
