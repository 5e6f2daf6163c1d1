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
from patchkit.prove.judge import RED
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import Proven, Prover, Target
from patchkit.prove.trees import Trees
from patchkit.series.folder import PROOFS
from patchkit.series.lockfile import Chain
from patchkit.series.naming import named


@dataclass
class Opened:
    """A series applied: the trees of its selection, and the proofs that are asked about.

    chain: the lock's whole series, which recorded results are compared with. extra: patch ->
    (kind, place, whether the proof goes red) of each hunk or mutant that was tried.
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
    extra: dict[str, list[tuple[str, str, bool]]] = field(default_factory=dict)

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
    for target in opened.targets(gpu=prover.gpu):
        name = target.proof.patch
        rows = opened.extra.setdefault(name, [])
        if hunks:
            trees = prove.left_out_trees(prover, opened.derived, opened.trees, name)
            rows += [("hunk", *r) for r in prove.killed(prover, target.proof, trees)]
        if mutants and target.proof.mutants:
            trees = prove.mutant_trees(prover, opened.derived, opened.trees, target.proof)
            rows += [("mutant", *r) for r in prove.killed(prover, target.proof, trees)]


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
                    {"kind": k, "place": p, "red": red}
                    for k, p, red in opened.extra.get(r.patch, ())
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
    tried, left = 0, 0
    for name, found in opened.extra.items():
        why = unproven.reasons(opened.folder, name)
        red = {place: goes_red for kind, place, goes_red in found if kind == "hunk"}
        for kind, place, goes_red in found:
            words = "goes red" if goes_red else "NOT PROVEN"
            reason = f": {why[place]}" if kind == "hunk" and place in why else ""
            out.line(f"{name}: {kind} {place}: {words}{reason}")
        if hunks:
            places, wrong = unproven.judge(name, red, why)
            tried, left = tried + len(red), left + len(places)
            out.find(wrong)
        out.find(_survived(name, p) for kind, p, red_ in found if kind == "mutant" and not red_)
    if hunks and opened.whole:
        for name in opened.without("cpu"):
            number = opened.derived.names.index(name)
            count = sum(1 for _ in opened.derived.outcomes[number].patch.hunks())
            out.line(f"{name}: {count} hunk(s) not tried: the proof needs a GPU")
            tried, left = tried + count, left + count
        out.line(f"{left} of {tried} hunks not proven")
        out.find(unproven.too_many(left, tried))


def _survived(patch: str, mutant: str) -> Finding:
    return Finding(
        "obsolete",
        f"the proof of {patch} does not see its mutant {mutant}",
        Where(patch=patch),
        expected="every mutant turns the proof red",
        found="it stays green",
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
