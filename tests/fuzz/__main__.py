"""A fuzzing run: `python -m tests.fuzz TARGET [--seconds 1200]`, with atheris installed.

Starts from the corpus and the seeds, runs libFuzzer, keeps the smallest set of inputs that reaches
the same edges, packs it, and writes the end of the log to `corpus/TARGET.log`. An input that breaks
a promise ends the run, whose exit code is then not 0, and is left in the current folder.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz import corpus
from tests.fuzz.seeds import ROOT, seeds

CHILD = """#!{python}
import sys
sys.path.insert(0, {root!r})
import atheris
with atheris.instrument_imports(include=["patchkit"]):
    from tests.fuzz.targets import run
atheris.Setup(sys.argv, lambda data: run({target!r}, bytes(data)))
atheris.Fuzz()
"""


def fuzz(target: str, seconds: int) -> int:
    """One run of one target; the exit code of the fuzzer."""
    with tempfile.TemporaryDirectory() as scratch:
        full, small = Path(scratch, "full"), Path(scratch, "small")
        full.mkdir()
        small.mkdir()
        for number, data in enumerate([*corpus.read(target), *seeds(target)]):
            (full / f"seed-{number}").write_bytes(data)
        child = Path(scratch, "child.py")  # a file: to merge, libFuzzer runs its own name again
        child.write_text(CHILD.format(python=sys.executable, root=str(ROOT), target=target))
        child.chmod(0o755)
        options = [
            "-max_len=16384",
            "-timeout=10",
            "-rss_limit_mb=1024",
            f"-artifact_prefix={target}-",
        ]
        done, log = _child(child, [*options, f"-max_total_time={seconds}", "-seed=1", str(full)])
        if done == 0:
            done, merged = _child(child, [*options, "-merge=1", str(small), str(full)])
            assert any(small.iterdir()), merged
            kept = corpus.write(target, (p.read_bytes() for p in small.iterdir()))
            (corpus.FOLDER / f"{target}.log").write_text(_summary(log, target, seconds, kept))
        print("\n".join(log.splitlines()[-30:]))
    return done


def _child(script: Path, arguments: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.returncode, done.stdout.decode(errors="replace")


def _summary(log: str, target: str, seconds: int, kept: int) -> str:
    """What the run reached, from libFuzzer's own lines."""
    ends = re.findall(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+)", log)
    runs, edges, features = ends[-1] if ends else ("0", "0", "0")
    peak = re.findall(r"rss: (\d+)Mb", log)
    return (
        f"target {target}: {seconds} s, {runs} inputs\n"
        f"edges reached {edges}, features {features}\n"
        f"corpus kept {kept} inputs; peak memory {max(map(int, peak), default=0)} MB\n"
    )


def main() -> int:
    """Read the arguments and run."""
    reader = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    reader.add_argument(
        "target", choices=sorted(["patch", "series", "header", "lock", "pins", "record"])
    )
    reader.add_argument("--seconds", type=int, default=1200)
    asked = reader.parse_args()
    return fuzz(asked.target, asked.seconds)


raise SystemExit(main())
