"""The prover of a release's trees."""

from __future__ import annotations

from collections.abc import Mapping

from patchkit.derive.project import Project
from patchkit.prove.environment import Environment
from patchkit.prove.proofs import Proof
from patchkit.prove.prove import Prover
from patchkit.prove.trees import Trees
from patchkit.rebase.plan import Row
from patchkit.rebase.proving import proven
from patchkit.store.repo import Store
from patchkit.upstreams import known


def prover_for(
    project: Project, store: Store, made: Environment, row: Row, proofs: Mapping[str, Proof]
) -> Row:
    """The row with its proofs run in `made`."""
    facts = known(project.pins.upstream_of(project.pins.pin(row.pin)))
    return proven(Prover(Trees(store, row.base, facts), made), row, proofs)
