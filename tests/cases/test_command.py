"""Every acceptance case through the command: verdict, reason, words, bytes, no other write."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchkit.series.lockfile import BASE, Blob, Chain, Lock, LockedPin
from patchkit.series.lockfile import Step as LockStep
from patchkit.series.lockjson import dumps
from patchkit.series.quilt import entries_digest, parse_series
from tests.cases.loader import Case, Snapshot, load_cases, snapshot

PENDING = {
    # name of a case -> what it waits for. Empty: every case runs.
}
CODES = {"applied": 0, "already-applied": 0, "refused": 1, "usage-error": 1}
PROGRAM = [sys.executable, "-m", "patchkit"]


@dataclass(frozen=True)
class Ran:
    code: int
    text: str
    rss_mb: float
    seconds: float

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found


class Bench:
    """A case laid out in a temporary folder, and the command run on it."""

    def __init__(self, case: Case, tmp_path: Path) -> None:
        self.case = case
        self.root = tmp_path
        self.tree = tmp_path / "tree"
        case.lay_out(self.tree)
        surroundings = case.expect.get("env", {})
        if surroundings.get("inside_git_repo"):
            subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        self.umask = int(surroundings.get("umask", "022"), 8)
        self.env = {**os.environ, "HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
        self.env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        self.env["PATCHKIT_CACHE"] = str(tmp_path / "cache")
        (tmp_path / "home").mkdir()
        if "gitconfig" in surroundings:
            (tmp_path / "home" / ".gitconfig").write_text(surroundings["gitconfig"])
        for name, value in surroundings.items():
            if name.isupper():
                self.env[name] = value
        self.allow(case)

    def allow(self, case: Case) -> None:
        """The patch, with what the case allows written into its header."""
        data = (case.source / "input.patch").read_bytes() if not case.is_series else b""
        if case.allow:
            lead = b"Subject: as the case says\nPatchkit-Allow: " + " ".join(case.allow).encode()
            data = lead + b"\n---\n" + data
        self.patch = self.root / "input.patch"
        self.patch.write_bytes(data)

    def run(self, *args: str, cwd: Path | None = None) -> Ran:
        began = time.monotonic()
        with open(self.root / "output", "w+b") as output:
            child = subprocess.Popen(
                [*PROGRAM, *args],
                env=self.env,
                umask=self.umask,
                cwd=cwd or self.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if "--json" not in args else subprocess.DEVNULL,
            )
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode("utf-8")
        assert isinstance(used, resource.struct_rusage)
        return Ran(child.returncode, text, used.ru_maxrss / 1024, time.monotonic() - began)

    def command(self) -> list[str]:
        case = self.case
        if case.is_series:
            return ["apply", "--series", str(case.source), "--to", str(self.tree)]
        if case.installed:
            site = self.tree / case.expect["root"]
            if "pin" in case.expect:
                return [*self.project(), "apply", "--pin", "p", "--installed", "--site", str(site)]
            return ["apply", str(self.patch), "--installed", "--site", str(site)]
        if {"pin", "recorded", "base_is"} & case.expect.keys():
            lead = self.project()
            return [*lead, "apply", "--pin", "p", "--source", str(self.tree), "--tree-only"]
        return ["apply", str(self.patch), "--to", str(self.tree)]

    def project(self) -> list[str]:
        """A project of kind plain whose pin's base is the case's tree; `-C` for the command."""
        at = self.root / "project"
        folder = at / "series" / "p"
        folder.mkdir(parents=True, exist_ok=True)
        version = self.case.expect.get("pin", {}).get("version", "")
        name = f"v{version}" if version else "p"
        folder = folder.rename(at / "series" / name) if name != "p" else folder
        self.pin = name
        (at / "pins.toml").write_text(
            '[upstreams.engine]\nkind = "plain"\npackage = "engine"\n'
            f'[pins."{name}"]\nupstream = "engine"\ncommit = "{"1" * 40}"\n'
        )
        (folder / "input.patch").write_bytes(self.patch.read_bytes())
        (folder / "series").write_text("input.patch\n")
        self.lock(folder)
        return ["-C", str(at)]

    def lock(self, folder: Path) -> None:
        """A lock that knows the patch (or, as the case says, another one), and no tree."""
        digest = hashlib.sha256((folder / "input.patch").read_bytes()).hexdigest()
        digest = self.case.expect.get("recorded", {}).get("patch_sha256", digest)
        step = LockStep("input.patch", Blob(0o100644, "0" * 40))
        paths = {"engine/scheduler.py": (LockStep(BASE, Blob(0o100644, "1" * 40)), step)}
        chain = Chain(("input.patch",), {"folder": ("0" * 40, "1" * 40)}, paths)
        series = parse_series(b"input.patch\n")
        pin = LockedPin(folder.name, "engine", "1" * 40)
        lock = Lock(
            pin,
            entries_digest(series.entries),
            (("input.patch", digest),),
            {},
            chain,
            {"default": chain},
        )
        (folder / "series.lock").write_bytes(dumps(lock))

    def look(self) -> Snapshot:
        """The tree, patchkit's own state set aside."""
        found = snapshot(self.tree, (b".git", b".pc", b".patchkit"))
        for record in self.tree.rglob("*.dist-info/RECORD"):
            name = record.relative_to(self.tree).as_posix()
            found.pop(name.replace("/RECORD", "/patchkit.json").encode(), None)
            rows = [r for r in record.read_bytes().splitlines(True) if b"/patchkit.json," not in r]
            digest = hashlib.sha256(b"".join(rows)).hexdigest()
            found[name.encode()] = (found[name.encode()][0], digest)
        return found


def run_case(bench: Bench) -> None:
    case = bench.case
    command = [getattr(bench, "pin", a) if a == "p" else a for a in bench.command()]
    base = bench.look()
    before = snapshot(bench.tree, ())

    dry = bench.run(*command, "--check", "--json")
    assert snapshot(bench.tree, ()) == before, "--check wrote something"
    assert dry.code == CODES[case.verdict], dry.text
    body = dry.json
    names = {f["name"] for f in body["findings"] if not f["note"]}
    if case.verdict in ("refused", "usage-error"):
        assert case.reason in names, body["findings"]
    check_json(case, body)

    ran = bench.run(*command)
    assert ran.code == CODES[case.verdict], ran.text
    for word in case.words:
        assert word in ran.text, f"{word!r} is not in:\n{ran.text}"
    assert "\x1b" not in ran.text
    assert "Traceback" not in ran.text
    for name in (*case.expect.get("left_out", ()), *case.expect.get("foreign", ())):
        assert name in ran.text
    for name in case.expect.get("unlisted", ()):
        assert name in ran.text
    if case.verdict == "applied" and case.installed:
        check_installed(bench, base)
    elif case.verdict == "applied" and "recorded" not in case.expect:
        assert bench.look() == case.expected(base)
    else:
        assert snapshot(bench.tree, ()) == before, "a refusal wrote something"
    limits = case.expect.get("limits")
    if limits:
        assert ran.seconds <= limits["seconds"]
        assert ran.rss_mb <= limits["rss_mb"]
    for step in case.expect.get("then", ()):
        run_then(bench, step, base)


def check_installed(bench: Bench, base: Snapshot) -> None:
    """The tree, and RECORD: its bytes where no row comes or goes, else its rows."""
    case = bench.case
    found, expected = bench.look(), case.expected(base)
    (record,) = bench.tree.rglob("*.dist-info/RECORD")
    name = record.relative_to(bench.tree).as_posix()
    if name not in case.expect["files"]:
        assert found.pop(name.encode()) != expected.pop(name.encode())
    assert found == expected
    rows = record_rows(record)
    old = record_rows(case.source / "base" / name)
    state = f"{record.parent.name}/patchkit.json"
    assert rows.pop(state), "RECORD lists the state"
    for path, row in case.expect["record"].items():
        assert rows.pop(path, "deleted") == row
        old.pop(path, None)
    assert rows == old


def record_rows(record: Path) -> dict[str, str]:
    with open(record, newline="") as file:
        return {path: f"{digest},{size}" for path, digest, size in csv.reader(file)}


def check_json(case: Case, body: dict[str, Any]) -> None:
    patches = body.get("patches", [])
    states = {p["state"] for p in patches}
    if case.verdict == "applied":
        assert states == {"would apply"}, "asked with --check"
    if case.verdict == "already-applied":
        assert states == {"already-applied"}
    expect = case.expect
    if case.verdict == "applied" and not case.is_series:
        (patch,) = patches
        if "strip" in expect:
            assert (patch["strip"], patch["directory"]) == (expect["strip"], expect["directory"])
        if "offsets" in expect:
            assert [p["offset"] for p in patch["places"]] == expect["offsets"]
    if case.verdict == "applied" and case.is_series:
        found = {p["patch"]: [place["offset"] for place in p["places"]] for p in patches}
        assert list(found) == [e["patch"] for e in expect["order"]]
        if "offsets" in expect:
            assert found == expect["offsets"]


def run_then(bench: Bench, step: dict[str, Any], base: Snapshot) -> None:
    for edit in step.get("edit", ()):
        with open(bench.tree / edit["path"], "a") as file:
            file.write(edit["append"])
    before = snapshot(bench.tree, ())
    command = bench.command()
    if step["verb"] == "revert":
        command = ["revert", *command[2:]]
    elif step["verb"] == "check":
        command = ["check", *command[2:]]
    ran = bench.run(*command)
    assert ran.code == CODES[step["verdict"]], ran.text
    for word in (*step.get("explain", ()), step.get("reason", "")):
        assert word in ran.text
    if step["verdict"] == "already-applied":
        assert "already" in ran.text or step["verb"] == "check"
    if step.get("nothing_written") or step["verdict"] == "already-applied":
        assert snapshot(bench.tree, ()) == before
    if step.get("same_as") == "base":
        assert bench.look() == base
        assert not (bench.tree / ".patchkit").exists()


@pytest.mark.parametrize(
    "case", [c for c in load_cases() if c.name not in PENDING], ids=lambda c: c.name
)
def test_case(case: Case, tmp_path: Path) -> None:
    run_case(Bench(case, tmp_path))
