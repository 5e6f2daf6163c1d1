"""Imports modules and writes what became of each as JSON.

    python pk_import.py REPORT PRELUDE MODULE...

Standard library. All go into one process, since most of what they import is the same. Those that
fail there are tried alone, and then behind those that can be imported: an import cycle may want
one of them first. What is said is why a module failed alone.
"""

import importlib
import json
import os
import sys

DIES = "its import ends the process"
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
    return {name: attempt(name) for name in names}


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
    found = in_a_fork(names) or dict.fromkeys(names, DIES)
    for name in [n for n in names if found[n]]:
        found[name] = (in_a_fork([name]) or {name: DIES})[name]
    good = [n for n in names if not found[n]]
    for name in [n for n in names if found[n]]:
        behind = in_a_fork([*good, name])
        if behind is not None and not behind[name]:
            found[name] = ""
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
