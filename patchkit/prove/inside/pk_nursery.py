"""Runs a proof again and again, each time in a process of its own that need not load torch anew.

    python pk_nursery.py PRELUDE LOADED

LOADED names a JSON file: the variables that a first run of the proof set, and the modules that
it had loaded from outside the tree, in their order. These are loaded here, once; then each line
of standard input, an object of env, cwd, out and args, starts a process that runs pytest, as
`python -m pytest` would with that environment. The answer is the process's id.
"""

import ctypes
import importlib
import json
import os
import signal
import sys

PRELUDE = {}
DIE_WITH_PARENT = 1
HERE = os.path.dirname(os.path.abspath(__file__))


def load(names):
    """Load the modules. A package that does not load in this order is left to the runs; one with
    compiled parts cannot be, and ends this process."""
    left = set()
    for name in names:
        top = name.partition(".")[0]
        if top in left or name in sys.modules:
            continue
        try:
            importlib.import_module(name)
        except Exception:
            mine = [n for n in sys.modules if n == top or n.startswith(top + ".")]
            files = [str(getattr(sys.modules[n], "__file__", None)) for n in mine]
            if any(file.endswith(".so") for file in files):
                raise
            left.add(top)
            for each in mine:
                del sys.modules[each]


def become(asked):
    """Be what a fresh interpreter with that environment would be."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(asked["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for here, there in ((null, 0), (out, 1), (out, 2)):
        os.dup2(here, there)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    rest = [p for p in sys.path if p not in ("", HERE)]
    sys.path[:] = [asked["cwd"], *asked["env"]["PYTHONPATH"].split(os.pathsep), *rest]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    sys.argv = ["pytest", *asked["args"]]
    sys.modules.pop("pk_watch", None)
    importlib.import_module("pk_watch")  # it watches what this process takes


def main():
    prelude, loaded = sys.argv[1:]
    with open(loaded, encoding="utf-8") as file:
        first = json.load(file)
    os.environ.update(first["set"])
    exec(prelude, PRELUDE)
    load(first["modules"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                become(json.loads(line))
                import pytest

                code = int(pytest.main(sys.argv[1:]))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
