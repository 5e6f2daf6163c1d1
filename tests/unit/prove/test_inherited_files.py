"""What a carried patch inherits beside its proof: the mutants, and the reasons for hunks."""

from __future__ import annotations

from patchkit.derive.project import find
from patchkit.prove.proofs import proofs_of
from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources


def test_mutants_and_reasons_are_inherited_each_for_itself(locked: SmallProject) -> None:
    project = with_sources(locked)
    first = project.series / "proofs"
    (first / "later.mutants").mkdir(parents=True)
    (first / "test_later.py").write_text("def test_nothing(): pass\n")
    (first / "later.mutants" / "one.diff").write_text("x\n")
    (first / "later.unproven").write_text("engine/lanes.py hunk 1: a comment\n")
    for old, new in (("v1.0", "v2.0"), ("v2.0", "v3.0")):
        release(project, new, {"engine/lanes.py": ("def lane_0", f"# {new}\ndef lane_0")})
        assert project.run("rebase", "--pin", old, "--onto", new).code == 0
    # On v2.0 the proof is another one, with the mutants and reasons of v1.0.
    second = project.at / "series" / "v2.0" / "proofs"
    second.mkdir()
    (second / "test_later.py").write_text("def test_other(): pass\n")
    third = project.at / "series" / "v3.0" / "proofs"
    (third / "later.mutants").mkdir(parents=True)
    (third / "later.mutants" / "two.diff").write_text("y\n")
    found = find(project.at)
    two = proofs_of(found, "v2.0", found.series("v2.0"))["later.patch"]
    three = proofs_of(found, "v3.0", found.series("v3.0"))["later.patch"]
    assert (two.module, three.module) == (second / "test_later.py",) * 2
    assert two.mutants == (first / "later.mutants" / "one.diff",)
    assert three.mutants == (third / "later.mutants" / "two.diff",)
    assert two.unproven == three.unproven == first / "later.unproven"
