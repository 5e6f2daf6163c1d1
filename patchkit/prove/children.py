"""Processes that proofs run in: limited, each the head of a group, none of which outlives us."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import FrameType

MEMORY = 64 << 30
"""Address space of a child, bytes. torch alone reserves many GB without using them."""

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux' prctl(2): the child is killed should we be, whatever by."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_STOPS = (signal.SIGTERM, signal.SIGHUP)
_running: set[int] = set()
_lock = threading.Lock()


def run_child(
    line: Sequence[str], env: Mapping[str, str], cwd: str, seconds: float, cpu: int = 0
) -> tuple[int, bytes]:
    """Run `line` for at most `seconds`; its exit status (-1: out of time) and what it printed.

    cpu: seconds of processor time that it, and each process it starts, may take; 0: as many as
    there are. Whatever it started and left running is killed with it.
    """
    with tempfile.TemporaryFile() as sink:
        with _lock:
            child = subprocess.Popen(
                line,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(limits, cpu),
            )
            _running.add(child.pid)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            with _lock:
                _kill(child.pid)
                child.wait()
                _running.discard(child.pid)
        sink.seek(0)
        return code, sink.read()


def limits(cpu: int = 0) -> None:
    """In a child, before it runs: its limits; it ends should we be ended."""
    if cpu:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)


@contextlib.contextmanager
def watched(pid: int) -> Iterator[None]:
    """While inside, the group of that process is one that does not outlive us; afterwards it is
    ended."""
    with _lock:
        _running.add(pid)
    try:
        yield
    finally:
        with _lock:
            _kill(pid)
            _running.discard(pid)


@contextlib.contextmanager
def none_outlives_us() -> Iterator[None]:
    """While inside, being ended by a signal or an exception ends every child, and its group, first.

    For the main thread; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {number: signal.signal(number, _stop) for number in _STOPS}
    try:
        yield
    except BaseException:
        _kill_all()
        raise
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    _kill_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _kill_all() -> None:
    for pid in tuple(_running):
        _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
