"""Fills in ci/bases.json: asks for the digest of each image and the commit of each action.

    python ci/resolve.py            ask for what is null, and write it
    python ci/resolve.py --check    exit 1 where something is null; asks nobody
    python ci/resolve.py --base wheels    print an image with its digest, for --build-arg BASE=

Needs docker (with buildx) or skopeo for images, and git for actions. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "bases.json"


def image(ref: str) -> str:
    """The digest that a registry gives for an image now. Raises SystemExit."""
    if shutil.which("skopeo"):
        line = ["skopeo", "inspect", "--format", "{{.Digest}}", f"docker://{ref}"]
    else:
        line = [
            "docker",
            "buildx",
            "imagetools",
            "inspect",
            "--format",
            "{{.Manifest.Digest}}",
            ref,
        ]
    found = _said(line).strip()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", found):
        raise SystemExit(f"{ref}: that is no digest: {found!r}")
    return found


def action(name: str, ref: str) -> str:
    """The commit that a tag of an action's repository names now. Raises SystemExit."""
    said = _said(["git", "ls-remote", f"https://github.com/{name}", f"refs/tags/{ref}*"])
    rows: dict[str, str] = {}
    for line in said.splitlines():
        commit, _, name_of_ref = line.partition("\t")
        rows[name_of_ref] = commit
    found = rows.get(f"refs/tags/{ref}^{{}}") or rows.get(f"refs/tags/{ref}", "")
    if not re.fullmatch(r"[0-9a-f]{40}", found):
        raise SystemExit(f"{name}: it has no tag {ref}")
    return found


def _said(line: list[str]) -> str:
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(line)}: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """The command; the exit code is returned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--base", metavar="NAME")
    asked = parser.parse_args()
    body: dict[str, Any] = json.loads(FILE.read_text())
    if asked.base:
        row = body["images"][asked.base]
        if row["digest"] is None:
            raise SystemExit(f"the digest of {row['ref']} was never seen: python ci/resolve.py")
        print(f"{row['ref'].rpartition(':')[0]}@{row['digest']}")
        return 0
    unknown = [row["ref"] for row in body["images"].values() if row["digest"] is None]
    unknown += [name for name, row in body["actions"].items() if row["commit"] is None]
    if asked.check:
        print("\n".join(f"not seen yet: {name}" for name in unknown) or "all are fixed")
        return 1 if unknown else 0
    for row in body["images"].values():
        row["digest"] = row["digest"] or image(row["ref"])
    for name, row in body["actions"].items():
        row["commit"] = row["commit"] or action(name, row["ref"])
    FILE.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
