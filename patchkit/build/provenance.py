"""What a wheel was made from and how, as an in-toto statement with SLSA's provenance predicate.

https://slsa.dev/spec/v1.0/provenance. It has no time of day, no host and no user, so that the
same inputs give the same bytes.
"""

from __future__ import annotations

import json
from typing import Any

from patchkit import __version__
from patchkit.build.built import Built, Input
from patchkit.build.inputs import Inputs
from patchkit.store.address import is_path, public
from patchkit.target.installed_state import series_digest

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
ENDING = ".provenance.json"


def sources(inputs: Inputs) -> list[Input]:
    """What every build of the stack is made from: source, trees, patches and lock."""
    base = inputs.prepared.base
    rows = []
    if base.sha256:
        rows.append(Input("sdist", base.name, (("sha256", base.sha256),)))
    elif base.source == "sdist" and base.name in inputs.pin.files:
        digest = inputs.pin.files[base.name].removeprefix("sha256:")
        rows.append(Input("sdist", base.name, (("sha256", digest),)))
    if inputs.pin.commit:
        git = inputs.upstream.git
        # A folder of this machine names nothing to anybody else.
        name = inputs.upstream.name if not git or is_path(git) else public(git)
        rows.append(Input("commit", name, (("gitCommit", inputs.pin.commit),)))
    rows.append(Input("tree", "base", (("gitTree", base.tree_id),)))
    rows.append(Input("tree", "patched", (("gitTree", inputs.tree),)))
    digests = dict(inputs.lock.patches)
    folder = f"series/{inputs.pin.name}"
    rows += [
        Input("patch", f"{folder}/{name}", (("sha256", digests[name]),))
        for name in inputs.chain.patches
    ]
    return rows


def command(inputs: Inputs, built: Built) -> list[str]:
    """The command that makes the wheel again."""
    line = ["patchkit", "build", "--pin", inputs.pin.name]
    if inputs.selection.stack is not None:
        line += ["--stack", inputs.selection.stack.name]
    line += ["--how", built.how]
    archs = dict(built.environment).get("TORCH_CUDA_ARCH_LIST")
    line += ["--cuda-archs", archs] if archs else []
    for row in built.inputs:
        if row.kind == "base-wheel":
            sha256 = dict(row.digests)["sha256"]
            line += ["--base-wheel", row.name]
            # A file of the pinned name with another digest is another wheel.
            if inputs.pin.files.get(row.name) != sha256:
                line += ["--sha256", sha256]
    return line


def statement(inputs: Inputs, built: Built) -> dict[str, Any]:
    """The statement, as JSON has it."""
    series = series_digest(inputs.lock, inputs.chain.patches)
    return {
        "_type": STATEMENT,
        "subject": [{"name": built.file_name, "digest": {"sha256": built.sha256}}],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"urn:patchkit:build:{built.how}:1",
                "externalParameters": {
                    "pin": inputs.pin.name,
                    "stack": inputs.selection.name,
                    "how": built.how,
                    "command": command(inputs, built),
                },
                "internalParameters": {
                    "version": built.version,
                    "content": {"sha256": built.content},
                    "series": {"sha256": series},
                    "environment": dict(built.environment),
                    "leftOut": list(built.left_out),
                },
                "resolvedDependencies": [
                    {
                        "name": row.name,
                        "digest": dict(row.digests),
                        "annotations": {"kind": row.kind},
                    }
                    for row in [*built.inputs, *sources(inputs)]
                ],
            },
            "runDetails": {
                "builder": {"id": "urn:patchkit:builder", "version": {"patchkit": __version__}},
            },
        },
    }


def dump(value: dict[str, Any]) -> bytes:
    """JSON with sorted keys; the same bytes for the same value."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")
