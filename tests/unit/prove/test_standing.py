"""`list` says what a patch's proof is, and names what is not proven with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import SmallProject
from tests.unit.prove.conftest import DEEPER

Write = Callable[[str, str], Path]


def listed(project: SmallProject) -> tuple[str, dict[str, str]]:
    text = project.run("list", "--pin", "v1.0")
    assert text.code == 0, text.text
    body = json.loads(project.run("list", "--pin", "v1.0", "--json").out)
    rows = body["pins"][0]["patches"]
    return text.out, {row["patch"]: row["proof"] for row in rows}


def test_each_kind_of_proof_is_named(project: SmallProject, write_proof: Write) -> None:
    for name, old in (("deeper", "DEPTH = 2"), ("wider", "WIDTH = 8"), ("bare", "STEPS = 4")):
        project.edited(name, "engine/plan.py", f"{old}\n", f"{old}0\n")
    write_proof("test_deeper", DEEPER)
    write_proof(
        "test_wider", "import pytest\npytestmark = pytest.mark.gpu\ndef test_width(): ...\n"
    )
    text, proofs = listed(project)
    assert proofs == {
        "deeper.patch": "cpu",
        "wider.patch": "not proven",
        "bare.patch": "none",
    }
    assert "bare.patch is not proven" not in text


def test_a_proof_for_a_gpu_counts_with_a_record(project: SmallProject, write_proof: Write) -> None:
    project.edited("wider", "engine/plan.py", "WIDTH = 8\n", "WIDTH = 9\n")
    write_proof("test_wider", "import pytest\n@pytest.mark.gpu\ndef test_width(): ...\n")
    text, proofs = listed(project)
    assert proofs == {"wider.patch": "not proven"}
    assert "wider.patch is not proven: it needs a GPU, and no result is recorded" in text


def test_a_header_may_say_that_a_patch_is_not_proven(
    project: SmallProject, write_proof: Write
) -> None:
    patch = project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    write_proof("test_deeper", DEEPER)
    said = "Forwarded: no\nNot-Proven: three ranks were never\n joined\n"
    patch.write_text(patch.read_text().replace("Forwarded: no\n", said))
    text, proofs = listed(project)
    assert proofs == {"deeper.patch": "not proven"}
    assert "deeper.patch is not proven: three ranks were never joined" in text
