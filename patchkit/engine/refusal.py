"""A patch that does not hold: which parts, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchkit.engine.already import parts_there
from patchkit.engine.content import Text
from patchkit.engine.difference import SHOWN
from patchkit.engine.explain import Subject, explain
from patchkit.engine.model import Hunk, Patch
from patchkit.engine.obstacles import Setting
from patchkit.engine.outcome import Outcome, There, Told
from patchkit.engine.perform import Result
from patchkit.engine.place import FAILS, HOLDS, THERE, Place
from patchkit.engine.quote import show_path
from patchkit.engine.rule import MAX_FUZZ, Rule
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Where

EXPLAINED = 20
"""Hunks of one file that are explained; further ones that fail are counted."""


def refused(
    patch: Patch,
    root: Root,
    results: Sequence[Result],
    notes: tuple[Finding, ...],
    setting: Setting,
    told: Told,
    reverse: bool,
) -> Outcome:
    there = tuple(p for r in results for p in parts_there(r))
    findings: list[Finding] = []
    candidates: list[Place] = []
    if there:
        findings.append(_partly(patch, results, there, setting.rule))
    for result in results:
        if result.there != "there":
            findings += result.findings
        _explain_hunks(result, patch, setting, told, reverse, findings, candidates)
    return Outcome(
        patch,
        "refused",
        findings=tuple(findings),
        notes=notes,
        root=root,
        candidates=tuple(candidates),
        there=there,
    )


def _explain_hunks(
    result: Result,
    patch: Patch,
    setting: Setting,
    told: Told,
    reverse: bool,
    findings: list[Finding],
    candidates: list[Place],
) -> None:
    failing = [i for i, spot in enumerate(result.spots) if spot.status == FAILS]
    text, path = result.text or Text([]), result.action.old or result.action.path
    line_ends: list[int] = []
    for i in failing[:EXPLAINED]:
        spot, hunk = result.spots[i], result.hunks[i]
        deletes = result.action.kind == "delete"
        subject = Subject(patch.name, path, i + 1, hunk, reverse, deletes, setting.rule.exact)
        explained = explain(subject, text, spot, _besides(hunk, text, setting, reverse))
        at = (explained.finding.where.line or 1) - 1
        by = told.changed_by(path, at, at + len(hunk.old))
        finding = explained.finding
        if by:
            finding = replace(finding, details=(*finding.details, by))
        if explained.candidate is not None:
            candidates.append(explained.candidate)
        if explained.line_ends and line_ends:
            line_ends.append(i + 1)
            continue
        if explained.line_ends:
            line_ends.append(i + 1)
        findings.append(finding)
    if len(line_ends) > 1:
        at = next(k for k, f in enumerate(findings) if f.name == "line-endings")
        more = "so do hunks " + ", ".join(map(str, line_ends[1:]))
        findings[at] = replace(findings[at], details=(*findings[at].details, more))
    if len(failing) > EXPLAINED:
        findings.append(
            Finding(
                "conflict",
                f"{len(failing) - EXPLAINED} more hunks of {show_path(path)} do not hold",
                Where(patch.name, path),
                next=f"patchkit refresh {show_path(patch.name)}",
            )
        )


def _besides(hunk: Hunk, text: Text, setting: Setting, reverse: bool) -> list[str]:
    """What else there is to say about a hunk that fails."""
    details = []
    if reverse:
        left = text.places(hunk.new)
        if left:
            lines = ", ".join(str(at + 1) for at in left[:SHOWN])
            details.append(f"what -R would leave stands at line {lines}: nothing to take out there")
    if setting.rule.allow.fuzz > MAX_FUZZ:
        details.append(
            f"the patch allows fuzz {setting.rule.allow.fuzz}; more than {MAX_FUZZ} is never "
            "used, since it drops every line that tells the place"
        )
    return details


def _partly(patch: Patch, results: Sequence[Result], there: Sequence[There], rule: Rule) -> Finding:
    """Some parts are in the tree and some are not: which."""
    shown: list[str] = []
    for result in results:
        path = show_path(result.action.path)
        if not result.spots:
            known = {"there": "is there already", "gone": "is gone", "mode": "has the mode already"}
            does = "is not there yet" if result.held else "does not hold"
            shown.append(f"{path}: {known.get(result.there, does)}")
            continue
        words = {THERE: "there already", HOLDS: "not there yet", FAILS: "not there, and fails"}
        parts = []
        for status in (THERE, HOLDS, FAILS):
            hunks = [str(i) for i, s in enumerate(result.spots, 1) if s.status == status]
            if hunks:
                more = f" and {len(hunks) - 20} more" if len(hunks) > 20 else ""
                many = "hunks" if len(hunks) > 1 else "hunk"
                is_are = "are" if len(hunks) > 1 else "is"
                parts.append(f"{many} {', '.join(hunks[:20])}{more} {is_are} {words[status]}")
        mode = result.action.new_mode
        if mode is not None and result.mode not in (None, mode):
            parts.append(f"mode {mode:o} is not there yet")
        shown.append(f"{path}: {'; '.join(parts)}")
    first = there[0]
    where = Where(patch.name, first.file, first.hunk or None, first.line)
    if rule.pin_base:
        return Finding(
            "upstreamed",
            "some parts of the patch are in this release already: " + "; ".join(shown[:SHOWN]),
            where,
            expected="a tree without any of it",
            found=f"{_parts(there)} there already",
            details=tuple(shown[SHOWN:]),
            next=f"patchkit refresh {show_path(patch.name)}",
        )
    return Finding(
        "partly-applied",
        "some parts of the patch are in the tree already: " + "; ".join(shown[:SHOWN]),
        where,
        expected="all of it, or none",
        found=f"{_parts(there)} there already",
        details=tuple(shown[SHOWN:]),
        next="make the named files what they were (or take the parts that are there out), then: "
        f"patchkit apply {show_path(patch.name)} --to DIR",
    )


def _parts(there: Sequence[There]) -> str:
    return "one part" if len(there) == 1 else f"{len(there)} parts"
