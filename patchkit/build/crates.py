"""The Rust crates of a compiled build, fetched before the network is closed.

Cargo.lock names each by its sha256, git ones by their commit; `--locked` refuses any other.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.source.base import Progress

HOME = "cargo"
"""Below the build folder: objects hold the paths of the crates."""
_LONGEST = 3600.0
_KEPT = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY"),
    *("NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CARGO_HTTP_CAINFO"),
)


def fetch(
    tree: str, manifest: str, variables: Mapping[str, str], offline: bool, progress: Progress
) -> None:
    """Fetch every crate of the manifest's lock into CARGO_HOME.

    manifest: its path in the tree, "" for none. Raises EnvironmentFault(network).
    """
    if not manifest or not os.path.isfile(os.path.join(tree, manifest)):
        return
    progress("fetching the crates", 0)
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    home = os.path.expanduser("~")
    env |= {"PATH": variables["PATH"], "HOME": home, "CARGO_HOME": variables["CARGO_HOME"]}
    for name in ("RUSTUP_HOME", "RUSTUP_TOOLCHAIN"):
        env |= {name: variables[name]} if name in variables else {}
    line = ["cargo", "fetch", "--locked", "--manifest-path", manifest]
    line += ["--offline"] if offline else []
    try:
        done = subprocess.run(
            line, cwd=tree, env=env, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
        said = (done.stderr or done.stdout).strip().splitlines() if done.returncode else []
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        said, failed = [str(error)], True
    if failed:
        raise EnvironmentFault(
            Finding(
                "network",
                "the Rust crates could not be fetched",
                Where(file=manifest),
                expected="every crate of its Cargo.lock",
                found=said[0] if said else "no message",
                next="a network, or a mirror in cargo's configuration ([source.crates-io])",
                details=tuple(said[1:8]),
            )
        )
