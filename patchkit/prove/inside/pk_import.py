"""Imports modules and writes what became of each as JSON.

    python pk_import.py REPORT PRELUDE MODULE...

Standard library. All go into one process, since most of what they import is the same; those that
fail are tried once more at its end, when what must precede them (an import cycle) is there. Only
where that process dies does each get a process of its own.
"""

import importlib
import json
import os
import sys

PRELUDE = {}
"""What the prelude made: it stays, as do registrations that end with their object."""


def attempt(name):
    """ "" or why the module cannot be imported, in one line."""
    try:
        importlib.import_module(name)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".split("\n")[0][:300]
    return ""


def all_of(names):
    """Module -> "" or why it cannot be imported."""
    found = {name: attempt(name) for name in names}
    return {name: why and attempt(name) for name, why in found.items()}


def in_a_fork(names):
    """What `all_of` gives in a process of its own; None where that process dies."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="ascii") as stream:
            json.dump(all_of(names), stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as stream:
        said = stream.read()
    status = os.waitpid(pid, 0)[1]
    return json.loads(said) if status == 0 and said else None


def main():
    report, prelude, *names = sys.argv[1:]
    exec(prelude, PRELUDE)
    found = in_a_fork(names)
    if found is None:
        dies = "its import ends the process"
        found = {n: (in_a_fork([n]) or {n: dies})[n] for n in names}
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
