"""Upstream's own build without compiled parts, in a throw-away copy of the patched tree.

The build backend runs in an environment in which every package has its hash, with a fixed umask
and environment and without a network. What it makes is then packed anew: sorted, stored, with
one date and two modes, since backends take these from the disk.
"""

from __future__ import annotations

import os

from patchkit.build import label
from patchkit.build.backend import EPOCH, Job, finish, put_text, run_backend, write_tree
from patchkit.build.built import Built, Input
from patchkit.build.environment import Environment, ready
from patchkit.build.inputs import Inputs
from patchkit.build.scratch import scratch
from patchkit.build.wheelfile import open_wheel
from patchkit.errors import Finding, Refused
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.upstreams.building import Recipe, recipe

GENERATOR = "patchkit-empty 1"
"""In WHEEL. The number is raised whenever the same inputs would give other bytes."""
VARIANT = "empty"
_LONGEST = 900.0


def build(inputs: Inputs, out: str, progress: Progress = silent) -> Built:
    """Build the wheel into the folder `out`.

    Raises Refused(unsupported) where the upstream has no such build or the build fails,
    not-built-from-this where it leaves files of the tree out; EnvironmentFault.
    """
    made = recipe(inputs.known.kind)
    if made.empty is None:
        raise Refused(
            Finding("unsupported", f"{inputs.upstream.name} has no build without compiled parts")
        )
    version = label.label(f"{label.public(inputs.version)}+{VARIANT}", inputs.tree)
    environment = ready(inputs.store.root, progress)
    with scratch(inputs.store.root, VARIANT) as at:
        progress("writing the tree", 0)
        tree = os.path.join(at, "tree")
        write_tree(inputs, tree)
        for path, text in made.stubs.items():
            put_text(os.path.join(at, "stubs"), path, text)
        variables = _variables(made, version, environment, at)
        progress("building", 0)
        python = os.path.join(environment.bin, "python")
        wheel = run_backend(python, variables, tree, os.path.join(at, "out"), _LONGEST)
        recorded = {
            "python": environment.python,
            "umask": "022",
            "SOURCE_DATE_EPOCH": EPOCH,
            "PYTHONHASHSEED": "0",
            made.version_variable: version,
            **made.empty,
        }
        used = (Input("environment", "build-env.txt", (("sha256", environment.sha256),)),)
        with open_wheel(wheel, digest_of(wheel)) as found:
            return finish(
                inputs, found, Job("empty", GENERATOR, version, True, recorded, used), out
            )


def _variables(made: Recipe, version: str, environment: Environment, at: str) -> dict[str, str]:
    """The whole environment of the build: nothing is inherited."""
    nowhere = "http://127.0.0.1:9"
    return {
        # Nothing but the environment's own programs: a cargo on PATH would add to the wheel.
        "PATH": environment.bin,
        "HOME": at,
        "TMPDIR": at,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.path.join(at, "stubs"),
        "SOURCE_DATE_EPOCH": EPOCH,
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        made.version_variable: version,
        **(made.empty or {}),
    }
