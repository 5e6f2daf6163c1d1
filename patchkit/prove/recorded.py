"""What earlier runs of a proof said of a tree; nothing is run."""

from __future__ import annotations

from patchkit.prove.alike import alike
from patchkit.prove.judge import BROKEN, GREEN, RED, Seen, green, red
from patchkit.prove.kept import kept
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import NOT_PROVEN, PROVEN, RULES, Proven
from patchkit.store.repo import Store
from patchkit.store.results import key_of
from patchkit.upstreams import Known

NOT_RUN = "not run here"


def seen_before(
    store: Store, facts: Known, proof: Proof, tree: str, environment: str
) -> Seen | None:
    """The kept run of the proof in that environment (a digest) on that tree, or on one where
    nothing that the run took differs; None without."""
    key = key_of(RULES, "cpu", proof.sha256, tree, environment)
    known = kept(store, key)
    if known is None:
        group = key_of(RULES, "alike", "cpu", proof.sha256, environment)
        other = alike(store, facts, group, tree)
        if other is not None:
            known = kept(store, key_of(RULES, "cpu", proof.sha256, other, environment))
    return known


def proven_before(
    store: Store, facts: Known, proof: Proof, before: str, after: str, environment: str
) -> tuple[Proven, Seen | None, Seen | None]:
    """The state that `prove` would give without running anything, and the two runs it is from.

    before, after: tree ids, before the patch and of the whole selection. The state is NOT_RUN
    where one of the two runs is not known.
    """
    first = seen_before(store, facts, proof, before, environment)
    second = seen_before(store, facts, proof, after, environment)
    if first is None or second is None:
        return Proven(proof.patch, NOT_RUN), first, second
    one, two = red(first), green(second)
    state = PROVEN if (one.state, two.state) == (RED, GREEN) else NOT_PROVEN
    if BROKEN in (one.state, two.state):
        state = BROKEN
    return Proven(proof.patch, state, one, two), first, second
