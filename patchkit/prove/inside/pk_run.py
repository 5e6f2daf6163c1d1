"""Runs exported proofs on a machine with a GPU: each on its tree before and on its tree after.

    python3 pk_run.py [--jobs N] [--only PATCH] [--seconds N] [-o result.json]

Standard library, and in the interpreter that it is started with: pytest, torch and whatever
else the proofs import; what it lacks may stand in the folder $PK_SITE. The trees are unpacked
below $PK_WORK (a temporary folder without it).
`patchkit prove --record result.json` takes what it writes.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
HALVES = {"red": "before", "green": "after"}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--jobs", type=int, default=1, help="proofs at a time")
    options.add_argument("--only", action="append", help="this patch's proof only")
    options.add_argument("--seconds", type=int, default=900, help="longest run of one half")
    options.add_argument("-o", "--output", default=os.path.join(os.getcwd(), "result.json"))
    asked = options.parse_args()
    with open(os.path.join(HERE, "manifest.json"), encoding="ascii") as file:
        manifest = json.load(file)
    sys.path[:0] = filter(None, [os.environ.get("PK_SITE")])
    missing = lacking(manifest["imports"])
    if missing:
        sys.exit(f"{sys.executable} lacks {', '.join(missing)}")
    work = os.environ.get("PK_WORK") or tempfile.mkdtemp(prefix="patchkit-export-")
    os.makedirs(work, exist_ok=True)
    base = unpack(work)
    patches = [p for p in manifest["patches"] if not asked.only or p in asked.only]
    runs = [(patch, half) for patch in patches for half in HALVES]
    for patch, half in runs:
        lay_out(work, base, manifest["patches"][patch], HALVES[half])

    def run(one):
        patch, half = one
        found = prove(work, manifest["patches"][patch], patch, half, asked.seconds)
        print(f"{patch} {half}: {found['summary']}", flush=True)
        return found

    with ThreadPoolExecutor(asked.jobs) as pool:
        halves = dict(zip(runs, pool.map(run, runs), strict=True))
    body = {
        "format": 1,
        "pin": manifest["pin"],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["sh", "run.sh", *sys.argv[1:]]),
        **machine(),
        "patches": {
            patch: {
                **{k: v for k, v in manifest["patches"][patch].items() if k != "removed"},
                **{half: halves[patch, half] for half in HALVES},
            }
            for patch in patches
        },
    }
    with open(asked.output, "w", encoding="ascii") as file:
        json.dump(body, file, indent=1, sort_keys=True)
    print(asked.output)


def lacking(modules):
    """Those of `modules` that this interpreter does not find."""
    import importlib.util

    return [name for name in modules if importlib.util.find_spec(name) is None]


def unpack(work):
    """The base tree's needed part, unpacked once."""
    base = os.path.join(work, "base")
    if not os.path.isdir(base):
        part = base + ".part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(os.path.join(HERE, "base.tar.gz")) as archive:
            archive.extractall(part, filter="data")
        os.rename(part, base)
    return base


def lay_out(work, base, patch, which):
    """The tree before or after a patch: the base, and what differs from it."""
    tree = os.path.join(work, patch["trees"][which])
    if os.path.isdir(tree):
        return
    part = tree + ".part"
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(base, part, copy_function=os.link)
    for path in patch["removed"][which]:
        os.unlink(os.path.join(part, path))
    over = os.path.join(HERE, "over", patch["trees"][which])
    for folder, _, names in os.walk(over):
        inner = os.path.join(part, os.path.relpath(folder, over))
        os.makedirs(inner, exist_ok=True)
        for name in names:
            place = os.path.join(inner, name)
            if os.path.lexists(place):
                os.unlink(place)  # a link to the base's, which stays
            shutil.copyfile(os.path.join(folder, name), place)
    os.rename(part, tree)


def prove(work, patch, name, half, seconds):
    """One proof on one tree: what its tests marked gpu did, and what they measured."""
    tree = os.path.join(work, patch["trees"][HALVES[half]])
    stem = os.path.join(work, f"{name.removesuffix('.patch')}-{half}")
    proofs = os.path.join(HERE, "proofs")
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(
            [tree, proofs, HERE, *filter(None, [os.environ.get("PK_SITE")])]
        ),
        PYTHONPYCACHEPREFIX=os.path.join(work, "pyc"),
        PYTHONHASHSEED="0",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PK_REPORT=stem + ".json",
        PK_PROOFS=proofs,
        PK_TREE=tree,
        PK_WATCH=stem + ".watched",
        PATCHKIT_GPU_RECORD=stem + ".measured.json",
        PATCHKIT_TRACE=stem + ".trace.json.gz",
    )
    line = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", proofs]
    line += ["-p", "no:cacheprovider", "-p", "pk_proofs", "-m", "gpu", "--tb=short"]
    line.append(os.path.join(proofs, patch["module"]))
    with open(stem + ".log", "wb") as log:
        child = subprocess.Popen(
            line, env=env, cwd=work, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    with open(stem + ".log", encoding="utf-8", errors="replace") as log:
        printed = log.read()
    found = {"tests": {}, "errors": [f"no report, exit status {code}: {printed[-1500:]}"]}
    if os.path.exists(stem + ".json"):
        with open(stem + ".json", encoding="ascii") as file:
            found = json.load(file)
    for row in found["tests"].values():
        row.pop("error", None)
    if os.path.exists(stem + ".measured.json"):
        with open(stem + ".measured.json", encoding="utf-8") as file:
            found["measured"] = json.load(file)
    found["summary"] = (printed.strip().splitlines() or [""])[-1]
    return found


def machine():
    """Where this is."""
    try:
        import torch

        there = {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
        there["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    except ImportError:
        there = {"torch": "", "cuda": "", "gpu": ""}
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    except OSError:
        driver = []
    there["driver"] = driver[0] if driver else ""
    there["python"] = platform.python_version()
    return there


if __name__ == "__main__":
    main()
