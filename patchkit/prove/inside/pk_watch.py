"""Watches what this process, and the Python processes it starts, take from the tree.

Standard library. PK_TREE names the tree, PK_WATCH the file to append to, a line each:

    used PATH       a file was opened (of bytecode: its source)
    missing NAME    a module was asked for that nothing provides
    listed FOLDER   a folder was listed, by anyone but the importer
    beyond WORDS    another program was given the tree: what it took is not known
"""

import os
import sys

TREE = os.environ.get("PK_TREE", "")
WATCH = os.environ.get("PK_WATCH", "")
SEEN = set()
IMPORTER = "<frozen importlib._bootstrap_external>"


def note(kind, what):
    line = f"{kind} {what}\n"
    if line not in SEEN:
        SEEN.add(line)
        handle = os.open(WATCH, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, line.encode("utf-8", "surrogateescape"))
        os.close(handle)


def inside(path):
    """The path below the tree, also of its bytecode; None for any other."""
    if not isinstance(path, str):
        path = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    prefix = sys.pycache_prefix or ""
    if prefix and path.startswith(prefix + TREE + os.sep) and path.endswith(".pyc"):
        folder, name = os.path.split(path[len(prefix) :])
        path = os.path.join(folder, name.partition(".")[0] + ".py")
    if not path.startswith(TREE + os.sep):
        return None
    return os.path.relpath(path, TREE)


def heard(event, args):
    if event == "open":
        if args[0] is not None and not isinstance(args[0], int):
            path = inside(args[0])
            if path is not None:
                note("used", path)
    elif event in ("os.listdir", "os.scandir", "glob.glob"):
        if sys._getframe(1).f_code.co_filename != IMPORTER and args[0] is not None:
            place = args[0] if isinstance(args[0], (str, bytes)) else ""
            if str(place) == TREE or inside(place) is not None:
                note("listed", os.path.relpath(os.fsdecode(place), TREE))
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"):
        words = repr(args[:3])
        if TREE in words and not os.path.basename(str(args[0])).startswith("python"):
            note("beyond", words[:200])


class Last:
    """Stands behind every finder: what comes here is found by none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        note("missing", name)


if TREE and WATCH:
    sys.addaudithook(heard)
    sys.meta_path.append(Last)
