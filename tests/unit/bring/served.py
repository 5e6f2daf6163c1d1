"""A git server on this machine with an upstream, pull requests and a fork."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

QUIET = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": os.devnull,
    **{f"GIT_{who}_NAME": "Pia Puller" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "pia@example.invalid" for who in ("AUTHOR", "COMMITTER")},
    "GIT_AUTHOR_DATE": "@1700000000 +0100",
    "GIT_COMMITTER_DATE": "@1700000000 +0000",
}


@dataclass
class Served:
    """The served repository: its address, its folder."""

    url: str
    at: Path

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.at), *args],
            capture_output=True,
            check=True,
            text=True,
            env=QUIET,
        ).stdout.strip()

    def commit(self, message: str, **files: str | None) -> str:
        """A commit of these files (`engine__plan_py` is engine/plan.py); None deletes."""
        for name, text in files.items():
            path = self.at / name.replace("__", "/").replace("_py", ".py").replace("_txt", ".txt")
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def pull(self, number: int) -> str:
        """Make HEAD the head of a pull request; back on main afterwards."""
        head = self.git("rev-parse", "HEAD")
        self.git("update-ref", f"refs/pull/{number}/head", head)
        self.git("checkout", "-q", "main")
        return head


@contextmanager
def serving(home: Path, base: Path) -> Iterator[Served]:
    """Serve a repository whose first commit, tagged v1.0, is the folder `base`."""
    at = home / "served" / "engine"
    at.parent.mkdir()
    subprocess.run(["cp", "-r", str(base), str(at)], check=True)
    made = Served("", at)
    made.git("init", "-q", "-b", "main")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "release")
    made.git("tag", "v1.0")
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("config", "uploadpack.allowAnySHA1InWant", "true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            *("git", "daemon", "--reuseaddr", "--export-all", "--listen=127.0.0.1"),
            *(f"--port={port}", f"--base-path={at.parent}", str(at.parent)),
        ],
        env=QUIET,
        stderr=subprocess.DEVNULL,
    )
    made.url = f"git://127.0.0.1:{port}/engine"
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            break
        except OSError:
            time.sleep(0.02)
    try:
        yield made
    finally:
        process.terminate()
        process.wait()
