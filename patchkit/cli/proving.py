"""What `patchkit prove` has at hand once the series is applied, and what it says of proofs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patchkit.cli.out import Out
from patchkit.derive.derive import Derived
from patchkit.derive.project import Project
from patchkit.derive.proof_text import kinds
from patchkit.derive.proofs import proof_module
from patchkit.derive.records import changed_since, parse_record, record_path
from patchkit.errors import Finding, Refused, Where
from patchkit.prove import prove, unproven
from patchkit.prove.judge import BROKEN, GREEN, NOT_RED, RAISES, RED, Verdict
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import Proven, Prover, Target
from patchkit.prove.trees import Trees
from patchkit.prove.trials import Trials
from patchkit.prove.variants import Variant
from patchkit.series.folder import PROOFS
from patchkit.series.lockfile import Chain
from patchkit.series.naming import named


@dataclass
class Opened:
    """A series applied: the trees of its selection, and the proofs that are asked about.

    chain: the lock's whole series, which recorded results are compared with. extra: patch ->
    each hunk or mutant that was tried. unsteady: patch -> why nothing was tried, since its proof
    is not green directly after it.
    """

    pin: str
    folder: Path
    derived: Derived
    trees: tuple[str, ...]
    at: Trees
    proofs: Mapping[str, Proof]
    wanted: Sequence[str]
    whole: bool
    chain: Chain
    extra: dict[str, list[Variant]] = field(default_factory=dict)
    unsteady: dict[str, Verdict] = field(default_factory=dict)

    def targets(self, *, gpu: bool = False) -> list[Target]:
        """The proofs that have a test for this kind of machine, with their trees.

        gpu: green is looked for directly after the patch, so that nothing later has a part in a
        recorded result; else on the whole selection.
        """
        kind = "gpu" if gpu else "cpu"
        have = {n: p for n, p in self.proofs.items() if kind in kinds(p.module)}
        return prove.targets_of(self.derived, self.trees, have, directly=gpu)

    def without(self, kind: str) -> list[str]:
        """Patches whose proof has no test for that kind of machine."""
        return [n for n, p in self.proofs.items() if kind not in kinds(p.module)]


def chain_of(project: Project, pin: str) -> Chain:
    """The lock's whole series; an empty one where there is no lock to compare records with."""
    try:
        return project.lock(pin).series
    except Refused:
        return Chain()


def wanted_of(patches: Sequence[str], names: Sequence[str]) -> list[str]:
    """The patches that are named, all without any. Raises UsageFault for one that is not there."""
    return [named(names, patch) for patch in patches] or list(names)


def tell(quiet: bool) -> Callable[[str, str], None]:
    """What says which proof begins, where nobody sees a progress bar."""

    def say(patch: str, what: str) -> None:
        if not quiet and not sys.stderr.isatty():
            sys.stderr.write(f"running: {patch} ({what})\n")

    return say


def run_variants(opened: Opened, prover: Prover, *, hunks: bool, mutants: bool) -> None:
    """Try every hunk left out, and every mutant, of the proofs that run here."""
    with Trials(prover, opened.derived, opened.trees) as trials:
        for target in opened.targets(gpu=prover.gpu):
            proof = target.proof
            if hunks or proof.mutants:
                state, found = trials.of(proof, hunks=hunks, mutants=mutants)
                opened.extra[proof.patch] = found
                if state.state != GREEN:
                    opened.unsteady[proof.patch] = state


def report(out: Out, opened: Opened, results: Sequence[Proven], *, gpu: bool, hunks: bool) -> None:
    """Tables, findings and JSON of a run of proofs."""
    rows = []
    for r in results:
        first = r.red.state if r.red else ""
        second = r.green.state if r.green else ""
        rows.append((r.patch, r.state, first, second, f"{r.seconds:.0f} s"))
        if r.state in ("broken", "not proven"):
            out.find([finding_of(r)])
    elsewhere = {} if gpu else {n: recorded(opened, n) for n in opened.without("cpu")}
    rows += [(name, words, "", "", "") for name, words in elsewhere.items()]
    missing = [n for n in opened.wanted if n not in opened.proofs]
    rows += [(name, "no proof", "", "", "") for name in missing]
    out.table("", ("patch", "state", "before", "after", "time"), rows, right="time")
    _variants(out, opened, hunks=hunks)
    out.find(
        Finding(
            "proof-missing",
            f"{name} has no proof",
            Where(patch=name),
            expected=f"{PROOFS}/{proof_module(name)} in the folder of the series",
            found="none",
            next="write one: CONTRIBUTING.md says how",
            note=True,
        )
        for name in missing
    )
    out.put(
        patches=[
            {
                "patch": r.patch,
                "state": r.state,
                "red": r.red.state if r.red else None,
                "green": r.green.state if r.green else None,
                "seconds": round(r.seconds, 1),
                "variants": [
                    {"kind": v.kind, "place": v.place, "red": v.red, "state": v.verdict.state}
                    for v in opened.extra.get(r.patch, ())
                ],
            }
            for r in results
        ],
        elsewhere=elsewhere,
        missing=missing,
    )


def recorded(opened: Opened, patch: str) -> str:
    """What is known of a proof that only a GPU can run."""
    path = record_path(opened.folder, patch)
    if not path.is_file():
        return "needs a GPU: no recorded result"
    try:
        record = parse_record(path.read_bytes(), path.name)
    except Refused:
        return "needs a GPU: the recorded result cannot be read (patchkit check)"
    stale = changed_since(record, opened.proofs[patch].sha256, opened.chain)
    return f"needs a GPU: {'stale ' if stale else ''}{record.words}"


def _variants(out: Out, opened: Opened, *, hunks: bool) -> None:
    count = {"tried": 0, "red": 0, "raises": 0, "not_proven": 0}
    for name, found in opened.extra.items():
        why = unproven.reasons(opened.proofs[name].unproven)
        for v in found:
            reason = f": {why[v.place]}" if v.kind == "hunk" and v.place in why else ""
            if v.verdict.state == RAISES:
                reason = f": {v.verdict.why[0].strip().splitlines()[-1][:200]}"
            out.line(f"{name}: {v.kind} {v.place}: {_WORDS[v.verdict.state]}{reason}")
        if hunks and name not in opened.unsteady:
            tried = {v.place: v.verdict for v in found if v.kind == "hunk"}
            places, wrong = unproven.judge(name, tried, why)
            count["tried"] += len(tried)
            count["red"] += sum(v.state == RED for v in tried.values())
            count["raises"] += sum(v.state == RAISES for v in tried.values())
            count["not_proven"] += len(places)
            out.find(wrong)
        out.find(_survived(name, v) for v in found if v.kind == "mutant" and not v.red)
    out.find(_unsteady(name, verdict) for name, verdict in opened.unsteady.items())
    if hunks:
        for name in opened.without("cpu") if opened.whole else ():
            number = opened.derived.names.index(name)
            more = sum(1 for _ in opened.derived.outcomes[number].patch.hunks())
            out.line(f"{name}: {more} hunk(s) not tried: the proof needs a GPU")
            count["not_proven"] += more
        every = count["red"] + count["raises"] + count["not_proven"]
        out.line(
            f"{every} hunks: {count['red']} red by assertion, {count['raises']} without which the "
            f"patch's own code raises, {count['not_proven']} not proven"
        )
        out.put(hunks={"hunks": every, **count})
        if opened.whole:
            out.find(unproven.too_many(count["not_proven"], every))
    mutants = [v for found in opened.extra.values() for v in found if v.kind == "mutant"]
    if mutants:
        red_ = sum(v.red for v in mutants)
        out.line(f"{len(mutants)} mutants: {red_} red by assertion")
        out.put(mutants={"tried": len(mutants), "red": red_})


_WORDS = {RED: "goes red", RAISES: "raises", BROKEN: "BROKEN, not red", NOT_RED: "NOT PROVEN"}


def _unsteady(patch: str, verdict: Verdict) -> Finding:
    return Finding(
        "proof-fails",
        f"the proof of {patch} is not green directly after it: no hunk or mutant was tried",
        Where(patch=patch),
        expected="green without the patches after it",
        found=verdict.state,
        details=verdict.why[:12],
        next=f"a test of the whole series that a later patch decides belongs to that patch's "
        f"proof; then patchkit prove {patch} --hunks",
    )


def _survived(patch: str, mutant: Variant) -> Finding:
    broken = mutant.verdict.state in (BROKEN, RAISES)
    return Finding(
        "obsolete",
        f"the proof of {patch} does not see its mutant {mutant.place}"
        if not broken
        else f"the mutant {mutant.place} of {patch} breaks the proof instead of turning it red",
        Where(patch=patch),
        expected="every mutant turns the proof red, by an assertion",
        found=mutant.verdict.why[0] if broken else "it stays green",
        next=f"add a test that fails on it, then patchkit prove {patch} --mutants",
    )


def finding_of(result: Proven) -> Finding:
    """Why the proof of a patch does not count, under the name that says which half is to blame."""
    why = [*(result.red.why if result.red else ()), *(result.green.why if result.green else ())]
    broken = result.state == "broken"
    # Red already before the patch says that the patch is needed: then it is the patched tree that
    # fails. A proof that passes before it has no use for the patch.
    name = "proof-fails" if result.red and result.red.state == RED else "obsolete"
    return Finding(
        "proof-broken" if broken else name,
        f"the proof of {result.patch} "
        + ("cannot be judged" if broken else "is not red before the patch and green after it"),
        Where(patch=result.patch),
        expected="every witness fails by assertion before the patch, everything passes after it",
        found=f"before: {result.red.state if result.red else '-'}, "
        f"after: {result.green.state if result.green else '-'}",
        details=tuple(why[:12]),
        next=f"patchkit prove {result.patch} --fresh, or mend the proof",
    )
