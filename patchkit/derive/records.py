"""Recorded GPU runs of proofs: proofs/results/<patch>.json, what each holds, when it is stale.

    format          1
    patch, pin
    proof_sha256    the proof's digest (derive/proof_text.py) when it ran
    trees           {"before": tree id, "after": tree id}: where it was red, and where green
    payload         path -> [blob id before, blob id after]: the files of the trees that the runs
                    loaded or read, and those that the patch changes; "" where there is no file
    payload_sha256  over proof_sha256 and payload: what the result speaks of
    red, green      {"tests": {name: {"outcome", "witness", "by_assertion", "line"}},
                    "measured": …}
    gpu, driver, torch, date, command, and whatever else was noted

A result speaks of its payload, not of the trees: an edit elsewhere in the series voids nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchkit.derive.project import Project
from patchkit.derive.proof_text import digest, kinds
from patchkit.derive.proofs import Origins, module_of, proof_module
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.series.folder import PROOFS, Series
from patchkit.series.header import Header
from patchkit.series.lockfile import Blob, Chain, Lock

FORMAT = 1
RESULTS = "results"
MACHINE = ("gpu", "driver", "torch", "date", "command")
"""What every record says of where it came from."""

Payload = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Record:
    """A recorded run that holds both halves. facts: value by name of MACHINE."""

    patch: str
    pin: str
    proof_sha256: str
    before: str
    after: str
    payload: Payload
    facts: Mapping[str, str]

    @property
    def words(self) -> str:
        """Where and when, in a few words."""
        return f"recorded result of {self.facts['date'][:10]} on {self.facts['gpu']}"


def results_folder(series_folder: Path) -> Path:
    """Where the records of a pin stand."""
    return series_folder / PROOFS / RESULTS


def record_path(series_folder: Path, patch: str) -> Path:
    """Where the record of `patch` stands, or would stand."""
    return results_folder(series_folder) / f"{patch.removesuffix('.patch')}.json"


def payload_digest(proof_sha256: str, payload: Payload) -> str:
    """What a result speaks of, in 64 hex digits."""
    body = [proof_sha256, sorted([path, *ids] for path, ids in payload.items())]
    return hashlib.sha256(json.dumps(body, separators=(",", ":")).encode("ascii")).hexdigest()


def parse_record(data: bytes, name: str) -> Record:
    """Read a record. Raises Refused(bad-record) with everything that is missing or wrong."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(_bad(name, "JSON", str(error))) from error
    wrong = list(_faults(body, name))
    if wrong:
        raise Refused(*wrong)
    return Record(
        body["patch"],
        body["pin"],
        body["proof_sha256"],
        body["trees"]["before"],
        body["trees"]["after"],
        {path: (ids[0], ids[1]) for path, ids in body["payload"].items()},
        {key: str(body[key]) for key in MACHINE},
    )


def renamed_record(data: bytes, to: str, module: Path) -> bytes:
    """The record of a patch whose name is to be `to`: the same run of the same proof.

    module: the proof under its old name. A record of an earlier proof stays one; what cannot be
    read stays as it is, for `check` to name.
    """
    try:
        body = json.loads(data)
        payload = parse_record(data, "").payload
    except (PatchkitError, ValueError, RecursionError):
        return data
    body["patch"] = to
    called = proof_module(to)
    body["proof_files"] = sorted(
        called if name == module.name else name for name in body.get("proof_files", ())
    )
    if module.is_file() and body["proof_sha256"] == digest(module):
        body["proof_sha256"] = digest(module, called)
        body["payload_sha256"] = payload_digest(body["proof_sha256"], payload)
    return written_record(body)


def written_record(body: Mapping[str, Any]) -> bytes:
    """A record as it stands in its file."""
    return json.dumps(body, indent=1, sort_keys=True).encode("ascii") + b"\n"


def _bad(name: str, expected: str, found: str, next: str = "") -> Finding:
    return Finding(
        "bad-record",
        f"{name} is no recorded result of a proof",
        Where(file=name),
        expected=expected,
        found=found,
        next=next or "patchkit prove --gpu --export DIR, run it, patchkit prove --record FILE",
    )


def _faults(body: Any, name: str) -> Iterator[Finding]:
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        found = body.get("format") if isinstance(body, dict) else type(body).__name__
        yield _bad(name, f'an object with "format": {FORMAT}', str(found))
        return
    for key in ("patch", "pin", "proof_sha256", "payload_sha256", *MACHINE):
        if not isinstance(body.get(key), str) or not body[key]:
            yield _bad(name, f'"{key}"', repr(body.get(key)))
    trees, payload = body.get("trees"), body.get("payload")
    if not isinstance(trees, dict) or not all(_text(trees.get(k)) for k in ("before", "after")):
        yield _bad(name, '"trees" with the ids "before" and "after"', repr(trees))
    yield from _half(body, name, "red")
    yield from _half(body, name, "green")
    if not isinstance(payload, dict) or not all(map(_ids, payload.values())):
        yield _bad(name, '"payload": path -> [blob id before, blob id after]', _short(payload))
    elif isinstance(body.get("proof_sha256"), str):
        found = payload_digest(body["proof_sha256"], payload)
        if found != body.get("payload_sha256"):
            yield _bad(name, f"payload_sha256 {found}", repr(body.get("payload_sha256")))


def _half(body: Mapping[str, Any], name: str, half: str) -> Iterator[Finding]:
    """What is wrong with one half: red needs every witness to have failed by assertion, green
    that all passed."""
    ran = body.get(half)
    tests = ran.get("tests") if isinstance(ran, dict) else None
    if not isinstance(tests, dict) or not tests or not all(map(_row, tests.values())):
        yield _bad(name, f'"{half}": the tests of the {half} half', _short(ran))
        return
    witnesses = {test: row for test, row in tests.items() if row.get("witness")}
    if not witnesses:
        yield _bad(name, f"at least one witness in the {half} half", "none")
    for test, row in (witnesses if half == "red" else tests).items():
        outcome = row["outcome"]
        if (
            half == "green"
            and outcome != "passed"
            and not (outcome == "skipped" and row.get("needs"))
        ):
            yield _bad(name, f"{test} passed on the patched tree", outcome)
        elif half == "red" and (outcome != "failed" or not row.get("by_assertion")):
            found = outcome if outcome != "failed" else f"failed, by {row.get('line', 'an error')}"
            yield _bad(name, f"{test} failed by assertion before the patch", str(found))


def _row(row: object) -> bool:
    return isinstance(row, dict) and _text(row.get("outcome"))


def _ids(ids: object) -> bool:
    return isinstance(ids, list) and len(ids) == 2 and all(isinstance(i, str) for i in ids)


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _short(value: object) -> str:
    return repr(value)[:120]


# -- what a list says ----------------------------------------------------------------------
NOT_PROVEN = "Not-Proven"
"""Header field: why a patch counts as not proven, whatever its proof shows."""


def standing(project: Project, pin: str, patch: str, header: Header) -> tuple[str, str]:
    """What a patch's proof is, in a word or two, and why it counts as not proven ("" if not).

    Nothing is run: "cpu" means that there is a proof for a CPU; a proof that only a GPU can run
    counts where a recorded result stands beside it.
    """
    module = module_of(project, pin, patch, header)
    reason = " ".join(header.first(NOT_PROVEN).split())
    if module is None:
        return ("not proven", reason) if reason else ("none", "")
    have = kinds(module)
    words = ", ".join(sorted(have)) or "no test"
    path = record_path(project.series_folder(pin), patch)  # an earlier pin's says nothing here
    if not reason and "cpu" not in have:
        try:
            words = f"gpu {parse_record(read_file(path), path.name).facts['date'][:10]}"
        except PatchkitError:
            reason = "it needs a GPU, and no result is recorded"
    return ("not proven", reason) if reason else (words, "")


# -- stale ---------------------------------------------------------------------------------
def changed_since(record: Record, proof_sha256: str, chain: Chain) -> list[str]:
    """What the record speaks of and is not so any more, in words; empty where all of it is.

    chain: the lock's whole series. A path that no patch touches is the base's, which the pin
    fixes; there a record may not say that the patch changed it.
    """
    words = []
    if proof_sha256 != record.proof_sha256:
        words.append("the proof")
    if record.patch not in chain.patches:
        return [*words, "the patch, which the series does not have"]
    number = chain.patches.index(record.patch)
    for path, (before, after) in sorted(record.payload.items()):
        if path in chain.paths:
            now = (_oid(chain.after(path, number)), _oid(chain.after(path, number + 1)))
            if now != (before, after):
                words.append(path)
        elif before != after:
            words.append(path)
    changed = {
        path
        for path, steps in chain.paths.items()
        if any(step.patch == record.patch for step in steps)
    }
    words += [
        f"{path}, which the patch changes now" for path in sorted(changed - {*record.payload})
    ]
    return words


def _oid(blob: Blob | None) -> str:
    return blob.oid if blob is not None else ""


def check_records(project: Project, pin: str, series: Series, lock: Lock) -> Iterator[Finding]:
    """A finding for each record of the pin that cannot be read, a note for each that is stale.

    A file with another dot in its name (patch.measured.json) is no record: it proves nothing.
    """
    rows = zip(series.entries, series.headers, strict=True)
    headers = {entry.patch: header for entry, header in rows}
    known: Origins = {}
    for path in sorted(results_folder(project.series_folder(pin)).glob("*.json")):
        if "." in path.stem:
            continue
        name = f"series/{pin}/{PROOFS}/{RESULTS}/{path.name}"
        try:
            record = parse_record(read_file(path), name)
        except Refused as refusal:
            yield from refusal.findings
            continue
        header = headers.get(record.patch, Header())
        module = module_of(project, pin, record.patch, header, known)
        now = digest(module) if module is not None else ""
        words = changed_since(record, now, lock.series)
        if words:
            yield Finding(
                "proof-stale",
                f"the {record.words} speaks of what is no more",
                Where(patch=record.patch, file=name),
                expected="what it ran on, unchanged",
                found=f"changed since: {', '.join(words[:6])}"
                + (f" and {len(words) - 6} more" if len(words) > 6 else ""),
                next=f"on a GPU: patchkit prove {record.patch} --gpu --export DIR, then --record",
                note=True,
            )
