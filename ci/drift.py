"""Opens one issue a release that the series does not hold on, and never a second one.

For each pin with a series, `patchkit drift` says release by release what would become of its
patches. A release with findings gets an issue, unless one of that title was ever opened. Needs
`gh` with GH_TOKEN; with --dry-run it only prints. Standard library only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parent.parent


def by_release(findings: list[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """(pin, release) -> its lines, from the keys `PIN/RELEASE/PATCH/STATE` of drift's findings."""
    out: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        if finding["note"]:
            continue
        key = next((d[5:] for d in finding.get("details", []) if d.startswith("key: ")), "")
        parts = key.split("/")
        if len(parts) == 4:
            line = f"- `{parts[2]}`: {parts[3]}: {finding['message']}"
            out.setdefault((parts[0], parts[1]), []).append(line)
    return out


def title(pin: str, release: str) -> str:
    """The one title of a release's issue."""
    return f"drift: {pin} on {release}"


def drift(pin: str) -> list[dict[str, Any]]:
    """The findings of `patchkit drift`."""
    line = [sys.executable, "-m", "patchkit", "drift", "--pin", pin, "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def _gh(*args: str) -> str:
    return subprocess.run(
        ["gh", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def main() -> int:
    """The command; the exit code is returned."""
    pins = tomllib.loads((ROOT / "pins.toml").read_text())["pins"]
    for pin in pins:
        if not (ROOT / "series" / pin / "series").is_file():
            continue
        for (_, release), lines in by_release(drift(pin)).items():
            name = title(pin, release)
            if "--dry-run" in sys.argv[1:]:
                print(name, *lines, sep="\n")
                continue
            query = ["issue", "list", "--state", "all", "--search", f'in:title "{name}"']
            known = json.loads(_gh(*query, "--json", "title", "--limit", "100"))
            if any(issue["title"] == name for issue in known):
                continue
            next_step = f"\n\nNext: `patchkit rebase --pin {pin} --onto {release} --plan`\n"
            _gh("issue", "create", "--title", name, "--body", "\n".join(lines) + next_step)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
