"""One proof on one tree, in an interpreter and a process of its own."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchkit.files.atomic import read_file
from patchkit.prove.alike import parse_watched
from patchkit.prove.children import run_child
from patchkit.prove.judge import Seen

INSIDE = Path(__file__).parent / "inside"
CPU = 900
"""Seconds of processor time that a process of a proof may take: what else the machine does shall
not break a proof."""

SECONDS = 3600
"""Longest run of one proof, whatever it waits for; one that is not done by then is broken."""

_KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Where:
    """python: the interpreter. tree: folder of the tree. bytecode: prefix for its bytecode."""

    python: str
    tree: str
    bytecode: str


Runs = Callable[[Sequence[str], Mapping[str, str], str, float], tuple[int, bytes]]
"""What runs pytest with arguments in an environment, in a folder, for so many seconds."""


def run_proof(
    module: Path,
    where: Where,
    *,
    gpu: bool = False,
    first: bool = False,
    loaded: str = "",
    runs: Runs | None = None,
    threads: int = 1,
) -> Seen:
    """Run the tests of `module` with `where.tree` first on the path; what was seen.

    gpu: run the tests marked gpu, else all others. first: end at the first test that fails by
    assertion. loaded: where to write what the run had loaded. runs: what runs it, an interpreter
    of its own without one. threads: for torch and its like.
    """

    def alone(
        args: Sequence[str], env: Mapping[str, str], cwd: str, seconds: float
    ) -> tuple[int, bytes]:
        return run_child([where.python, "-m", "pytest", *args], env, cwd, seconds, CPU)

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="patchkit-proof-") as scratch:
        report = os.path.join(scratch, "report.json")
        args = [
            "-q",
            "-c",
            os.devnull,
            f"--rootdir={module.parent}",
            "-p",
            "no:cacheprovider",
            "-p",
            "pk_proofs",
            "-m",
            "gpu" if gpu else "not gpu",
            str(module),
        ]
        env = _environment(module, where, report, scratch, threads)
        watched = env["PK_WATCH"] = os.path.join(scratch, "watched")
        if first:
            env["PK_FIRST"] = "1"
        if loaded:
            env["PK_LOADED"] = loaded
        code, printed = (runs or alone)(args, env, scratch, SECONDS)
        tail = printed.decode("utf-8", "replace")[-2000:]
        seconds = time.monotonic() - began
        if not os.path.exists(report):
            what = f"no report after {seconds:.0f} s, exit status {code}"
            if code == -signal.SIGXCPU:
                what = f"not done after {CPU} s of processor time"
            elif code == -1:
                what = f"not done after {SECONDS} s"
            return Seen({}, f"{what}: {tail.strip()[-600:]}", seconds, lost=True)
        body = json.loads(read_file(report))
        took = read_file(watched).decode("utf-8", "replace") if os.path.exists(watched) else ""
    trouble = "; ".join(str(e) for e in body["errors"])
    taken = parse_watched(took).dumps()
    raised_in = str(body.get("raised_in", ""))
    return Seen(body["tests"], trouble[-1500:], seconds, taken=taken, raised_in=raised_in)


def environment_of(where: Where, scratch: str, threads: int = 1) -> dict[str, str]:
    """What a process of ours finds in its environment; nothing else of the user's."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env.update(
        PYTHONPYCACHEPREFIX=where.bytecode,
        PYTHONHASHSEED="0",
        PYTHONNOUSERSITE="1",
        OMP_NUM_THREADS=str(threads),
        HF_HUB_OFFLINE="1",
        VLLM_NO_USAGE_STATS="1",
        VLLM_CACHE_ROOT=os.path.join(scratch, "vllm-cache"),
        TRITON_CACHE_DIR=os.path.join(scratch, "triton"),
        TORCHINDUCTOR_CACHE_DIR=os.path.join(scratch, "inductor"),
        no_proxy="*",
    )
    return env


def _environment(
    module: Path, where: Where, report: str, scratch: str, threads: int
) -> dict[str, str]:
    paths = [where.tree, str(module.parent), str(INSIDE)]
    return {
        **environment_of(where, scratch, threads),
        "PYTHONPATH": os.pathsep.join(paths),
        "PK_REPORT": report,
        "PK_PROOFS": str(module.parent),
        "PK_TREE": where.tree,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
