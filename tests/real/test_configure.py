"""The compiling cells of the matrix: their commands run, and say by name what cannot be had.

PATCHKIT_TEST_COMPILED=1 lets them fetch: gigabytes, and a compiler that is new enough. Without it
they run offline; then what is absent is named, which is as much as a machine without it can show.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = "v0.30.0"
LACKS = (
    "C++ compiler",
    "libnuma",
    "toolkit",
    "environment",
    "interpreter",
    "is missing",
    "of its own architecture",
)

pytestmark = [pytest.mark.real, pytest.mark.slow]


def patchkit(*args: str) -> tuple[int, dict[str, Any]]:
    line = [sys.executable, "-m", "patchkit", "-C", str(ROOT), *args, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def compiling() -> list[dict[str, Any]]:
    code, found = patchkit("matrix")
    assert code == 0
    cells = [c for c in found["cells"] if c["pin"] == PIN and not c["runnable"]]
    assert {c["how"] for c in cells} == {"cuda", "cpu"}
    return cells


def test_every_compiling_cell_configures_or_names_what_is_absent() -> None:
    offline = [] if os.environ.get("PATCHKIT_TEST_COMPILED") else ["--offline"]
    for cell in compiling():
        if cell["arch"] != "x86_64" and not offline:
            continue  # needs a machine of that architecture
        program, *rest = shlex.split(cell["command"])
        assert program == "patchkit"
        code, said = patchkit(*rest, "--configure-only", *offline)
        if code == 0:
            assert "Configuring done" in said["said"], cell["id"]
            assert said["count"] > 100, cell["id"]
            continue
        assert code == 3, (cell["id"], said)
        found = [f for f in said["findings"] if not f["note"]]
        for finding in found:
            named = "could not be fetched" in finding["message"]
            assert named or any(word in finding["message"] for word in LACKS), finding
            if named:
                assert " at " in finding["expected"], finding
                assert finding["next"], finding
        print(f"{cell['id']}: {'; '.join(f['message'] for f in found)}")


def test_doctor_names_every_source_of_the_release_and_what_fixes_it() -> None:
    asked = ("--pin", PIN, "--stack", "3x4090-nvfp4-native", "--offline")
    code, cuda = patchkit("doctor", "--build", "cuda", *asked)
    assert code in (0, 1), "a compiler may be missing"
    assert {s["name"]: s["fixed"] for s in cuda["sources"]} == {
        "cutlass": False,
        "deepgemm": True,
        "deepselect": True,
        "flashkda": True,
        "flashmla": True,
        "fmha_sm100": True,
        "qutlass": True,
        "tml_fa4": True,
        "triton_kernels": False,
        "vllm-flash-attn": True,
    }
    code, cpu = patchkit("doctor", "--build", "cpu", *asked, "--arch", "x86_64")
    assert [(s["name"], s["ref"]) for s in cpu["sources"]] == [("oneDNN", "v3.13")]
