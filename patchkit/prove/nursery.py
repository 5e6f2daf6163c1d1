"""Runs of one proof on many trees, each in a process of its own that need not load torch anew.

Most of a run's time goes into loading what no patch touches: torch, transformers, triton. For the
small changes of one proof (hunks left out, mutants) that is loaded once, from a list that a run
on the patched tree wrote, and each run is a fork (inside/pk_nursery.py). A proof is red before its
patch and green after it in an interpreter of its own (run.py), never here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import partial

from patchkit.files.atomic import read_file
from patchkit.prove.children import limits, watched
from patchkit.prove.run import INSIDE


class Nursery:
    """A process that starts runs. env: what it is started with. loaded: the list's file. cpu:
    seconds of processor time that each run may take."""

    def __init__(
        self, python: str, prelude: str, loaded: str, env: Mapping[str, str], cpu: int
    ) -> None:
        self._lock = threading.Lock()
        self._scratch = tempfile.TemporaryDirectory(prefix="patchkit-nursery-")
        self._said = os.path.join(self._scratch.name, "stderr")
        with open(self._said, "wb") as said:
            self._head = subprocess.Popen(
                [python, str(INSIDE / "pk_nursery.py"), prelude, loaded],
                env={**env, "PYTHONPATH": str(INSIDE)},
                cwd=self._scratch.name,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
                preexec_fn=partial(limits, cpu),
            )
        self.ready = self._answer() == "ready"

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *unused: object) -> None:
        with contextlib.suppress(BrokenPipeError, OSError):
            self._head.stdin and self._head.stdin.close()
        self._head.kill()
        self._head.wait()
        if self._head.stdout:
            self._head.stdout.close()
        self._scratch.cleanup()

    def why(self) -> str:
        """What it said last, where it is not ready."""
        lines = read_file(self._said).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "no reason"

    def _answer(self) -> str:
        assert self._head.stdout is not None
        return self._head.stdout.readline().decode("ascii", "replace").strip()

    def run(
        self, args: Sequence[str], env: Mapping[str, str], cwd: str, seconds: float
    ) -> tuple[int, bytes]:
        """As children.run_child, of pytest with these arguments. The exit status is -1 for a run
        out of time, else 0: what there is to know stands in the report."""
        out = os.path.join(cwd, "printed")
        asked = {"env": dict(env), "cwd": cwd, "out": out, "args": list(args)}
        with self._lock:
            assert self._head.stdin is not None
            self._head.stdin.write(json.dumps(asked).encode("ascii") + b"\n")
            self._head.stdin.flush()
            pid = int(self._answer())
        code = 0
        with watched(pid), contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                if not ended.poll(seconds * 1000):
                    code = -1
            finally:
                os.close(handle)
        return code, read_file(out) if os.path.exists(out) else b""
