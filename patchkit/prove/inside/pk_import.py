"""Imports modules, each in a fork of its own, and writes what became of each as JSON.

    python pk_import.py REPORT PRELUDE MODULE...

Standard library. A module that another one must precede (an import cycle) is tried once more
in a process that holds all that could be imported.
"""

import importlib
import json
import os
import sys


def attempt(name):
    """ "" or why the module cannot be imported, in one line."""
    try:
        importlib.import_module(name)
    except BaseException as error:
        return f"{type(error).__name__}: {error}".split("\n")[0][:300]
    return ""


def in_a_fork(name):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.write(writer, attempt(name).encode("utf-8", "replace"))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode("utf-8", "replace")
    status = os.waitpid(pid, 0)[1]
    return said or ("" if status == 0 else f"the process ended with status {status}")


def main():
    report, prelude, *names = sys.argv[1:]
    exec(prelude, {})
    for package in sorted({name.partition(".")[0] for name in names}):
        attempt(package)  # once for all forks
    found = {name: in_a_fork(name) for name in names}
    for name in names:
        if not found[name]:
            attempt(name)
    for name in names:
        if found[name]:
            found[name] = attempt(name)
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
