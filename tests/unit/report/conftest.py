"""A project with two releases, an odd header and a recorded result, and the site of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'too'"


@pytest.fixture
def told(project: SmallProject) -> SmallProject:
    """Patches: clean, needed, guarded, in conflict on v1.1; one says hostile things."""
    project = with_sources(project)
    deeper = project.edited("deeper", "engine/plan.py", "DEPTH = 2\n", "DEPTH = 3\n")
    project.edited("deepest", "engine/plan.py", "DEPTH = 3\n", "DEPTH = 4  # <b>\x1b[31m\n", "wide")
    project.edited("later", "engine/lanes.py", "    return 9\n", "    return 90\n")
    words = (
        f"Subject: {HOSTILE}\nOrigin: https://example.invalid/pr/1?a=1&b=2\n"
        "Bug: javascript:alert(1)\nForwarded: no\nLast-Update: 2026-11-30\n\n"
        "Seen \x1b[2J and \u202ebidi, see https://example.invalid/x.\n"
        "- one <item>\n- two\n\nSwitch: LANES_DEEP (default <1>): deeper & deeper\n---\n"
    )
    head, _, diff = deeper.read_text().partition("\n---\n")
    lines = [line for line in head.splitlines() if line.startswith(("From:", "Date:"))]
    deeper.write_text("\n".join(lines) + "\n" + words + diff)
    proofs = project.series / "proofs"
    (proofs / "results").mkdir(parents=True)
    (proofs / "test_deeper.py").write_text(
        '"""Deeper <is> deeper."""\n\nimport pytest\n\n\n@pytest.mark.witness\n'
        'def test_it_is_deeper():\n    """By one."""\n    assert False\n'
    )
    (proofs / "results" / "deeper.json").write_text(
        json.dumps({"gpu": "<GPU>", "torch": "2.0", "red": {"pytest": ["1 failed"]}, "x": "\x07"})
    )
    release(project, "v1.1", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 20")})
    done = project.run("lock", "--pin", "v1.0")
    assert done.code == 0, done.text
    return project


@pytest.fixture
def site(told: SmallProject, tmp_path: Path) -> Path:
    """The folder of the site."""
    at = tmp_path / "site"
    done = told.run("report", "-o", str(at))
    assert done.code == 0, done.text
    return at
