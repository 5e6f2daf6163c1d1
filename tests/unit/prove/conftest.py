"""A small project with proofs, and a prover that runs them in this interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchkit.derive.base import open_bases
from patchkit.derive.derive import Derived, derive, trees_of
from patchkit.derive.project import Project, find
from patchkit.derive.selection import Selection
from patchkit.prove import prove
from patchkit.prove.environment import Environment
from patchkit.prove.proofs import Proof, proofs_of
from patchkit.prove.trees import Trees
from patchkit.upstreams import known
from tests.conftest import SmallProject

HERE = Environment(sys.executable, "0" * 64, False)

DEEPER = """
import pytest
from engine import plan


@pytest.mark.witness
def test_depth():
    assert plan.DEPTH == 3


def test_width():
    assert plan.WIDTH == 8
"""


@dataclass
class Proving:
    """Everything a run of `prove` has at hand."""

    project: Project
    prover: prove.Prover
    derived: Derived
    trees: tuple[str, ...]
    proofs: dict[str, Proof]

    def results(self) -> list[prove.Proven]:
        """The proofs, run."""
        return self.prover.prove(prove.targets_of(self.derived, self.trees, self.proofs))


@pytest.fixture
def write_proof(project: SmallProject) -> Callable[[str, str], Path]:
    """Write a proof's module (a name without .py) and give its path."""

    def write(name: str, text: str) -> Path:
        path = project.series / "proofs" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def proving(project: SmallProject) -> Callable[[], object]:
    """Open the project as it stands: a context manager of a Proving."""

    @contextmanager
    def opened() -> Iterator[Proving]:
        found = find(project.at)
        pin = found.one_pin(None)
        series = found.series(pin.name)
        with open_bases(found) as bases:
            base = bases.get(pin, str(project.base))
            derived = derive(series, base.tree(bases.store), Selection(None))
            assert derived.ok, derived.findings
            trees = trees_of(bases.store, derived, base.tree_id)
            at = Trees(bases.store, base, known(found.pins.upstream_of(pin)))
            prover = prove.Prover(at, HERE, workers=1)
            yield Proving(found, prover, derived, trees, proofs_of(found, pin.name, series))

    return opened
