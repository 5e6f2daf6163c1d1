"""Run of the full suite what a change touches: a test file runs again when its inputs changed.

Tests marked `slow` too are left to `make test-all`. A file of tests marked `real` is keyed by the
digest of itself, of what it takes from other tests, and of what the real tests read (`SHARED`). A
key that passed before (in the user's cache) is not run again. Prints a line a file; exits 1 where
one fails.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_dir

ROOT = Path(__file__).resolve().parent.parent
SHARED = (
    *("patchkit", "series", "pins.toml", "ci", "README.md", "docs/stacks"),
    *("tests/conftest.py", "pyproject.toml", "requirements.txt"),
)
TOOLS = ("quilt", "patch", "gcc", "cmake")
NOTHING_COLLECTED = 5
KEPT = Path(user_cache_dir("patchkit")) / "ci"


def tracked(path: str) -> list[Path]:
    """Files below `path` that git knows or would add."""
    listed = subprocess.run(
        [
            # Named so, a clone that belongs to somebody else (in a container, say) is read, too.
            *("git", f"--git-dir={ROOT / '.git'}", f"--work-tree={ROOT}"),
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", path),
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    return sorted(ROOT / name.decode() for name in listed if name)


def digest(paths: list[Path]) -> str:
    """One digest of the names and bytes of `paths`."""
    total = hashlib.sha256(sys.version.encode())
    for path in paths:
        if path.is_file():
            total.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def taken(path: Path) -> list[Path]:
    """The folders of tests that a file of tests takes something from."""
    names = re.findall(r"^\s*from tests\.([\w.]+)\.\w+ import", path.read_text(), re.MULTILINE)
    return [p for name in sorted(set(names)) for p in tracked(f"tests/{name.replace('.', '/')}")]


def main() -> int:
    """Run what has no kept result; the exit code is returned."""
    shared = digest([p for name in SHARED for p in tracked(name)])
    # A test that was skipped for want of a tool has not passed for a machine that has it.
    tools = [name for name in TOOLS if shutil.which(name)]
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = 0
    for path in tracked("tests/real"):
        if not path.name.startswith("test_"):
            continue
        key = f"{shared} {tools} {digest([path, *taken(path)])}"
        mark = KEPT / hashlib.sha256(key.encode()).hexdigest()
        name = path.relative_to(ROOT)
        if mark.exists():
            print(f"{name}: passed before with the same inputs")
            continue
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rs", "-m", "real and not slow", str(path)],
            cwd=ROOT,
            check=False,
        )
        fine = done.returncode in (0, NOTHING_COLLECTED)
        print(f"{name}: {'passed' if fine else 'FAILED'}", flush=True)
        if fine:
            mark.touch()
        else:
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
