"""Opens one issue a release that the series does not hold on, and never a second one.

For each pin with a series, `patchkit drift` says release by release what would become of its
patches. A release with findings and without a series gets an issue, unless one of that title was
ever opened. Needs `gh` with GH_TOKEN; with --dry-run it only prints. With --expected no issue is
opened: what drift says is compared with ci/drift-expected.json, in which a person wrote every cell
and its reason. Standard library only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "ci" / "drift-expected.json"


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


def has_series(pin: str) -> bool:
    """Whether a pin has a series of its own."""
    return (ROOT / "series" / pin / "series").is_file()


def title(pin: str, release: str) -> str:
    """The one title of a release's issue."""
    return f"drift: {pin} on {release}"


def differences(expected: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """A line for each cell (patch and release) that is not as expected, has no reason, is not
    there, or that nobody expects."""
    cells = expected["cells"]
    wanted = {
        (patch, release): cell for patch, row in cells.items() for release, cell in row.items()
    }
    found = {(c["patch"], r["pin"]): c["text"] for r in said["releases"] for c in r["patches"]}
    out = []
    for key in sorted({*wanted, *found}):
        cell, text = wanted.get(key), found.get(key)
        where = f"{key[0]} on {key[1]}"
        if cell is None:
            out.append(f"{where}: {text}, and {EXPECTED.name} has no such cell")
        elif text is None:
            out.append(f"{where}: expected {cell['text']}, and drift has no such cell")
        elif cell["text"] != text:
            out.append(f"{where}: expected {cell['text']} ({cell['why']}), found {text}")
        elif not cell["why"].strip():
            out.append(f"{where}: {text}, without a reason")
    return out


def check_expected() -> int:
    """Compare drift with what a person wrote; the exit code."""
    expected = json.loads(EXPECTED.read_text())
    wrong = differences(expected, _said(expected["pin"], "--all"))
    cells = sum(map(len, expected["cells"].values()))
    print(*wrong, f"{cells} cells expected, {len(wrong)} not as found", sep="\n")
    if wrong:
        print(f"next: look at what upstream changed, then write it into {EXPECTED.name} by hand")
    return 1 if wrong else 0


def drift(pin: str) -> list[dict[str, Any]]:
    """The findings of `patchkit drift`."""
    found: list[dict[str, Any]] = _said(pin)["findings"]
    return found


def _said(pin: str, *options: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "patchkit", "drift", "--pin", pin, "--json", *options]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    body: dict[str, Any] = json.loads(done.stdout)
    return body


def _gh(*args: str) -> str:
    return subprocess.run(
        ["gh", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def main() -> int:
    """The command; the exit code is returned."""
    if "--expected" in sys.argv[1:]:
        return check_expected()
    pins = tomllib.loads((ROOT / "pins.toml").read_text())["pins"]
    for pin in pins:
        if not has_series(pin):
            continue
        for (_, release), lines in by_release(drift(pin)).items():
            if has_series(release):
                continue  # the series was carried there
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
