"""docs/reference.md says what --help says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from patchkit.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[3]


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "reference.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_verb_has_a_part_with_examples() -> None:
    parts = re.split(r"\n## ", (ROOT / "docs" / "reference.md").read_text())[1:]
    verbs = [part.partition("\n")[0] for part in parts]
    assert verbs == ["patchkit", *(name.rstrip("_").replace("_", "-") for name in VERBS)]
    assert [v for v, part in zip(verbs, parts, strict=True) if "Example" not in part] == []


def test_the_list_of_verbs_is_not_cut_off_in_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    listed = done.stdout.partition("Commands:")[2].partition("Examples:")[0]
    assert "..." not in listed
    assert all(f" {line}\n" in listed for line in VERBS.values())
