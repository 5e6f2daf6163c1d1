"""How git is called: the one home of git's quirks, each with its reason beside it.

Nothing of the user's surroundings may reach a tree, a commit or a wheel: no configuration, hook,
filter, locale, clock or GIT_ variable. Reading objects by id could hardly be influenced, but a
rule without exceptions is easier to hold.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from patchkit.errors import EnvironmentFault, Finding
from patchkit.store.address import blotted, login

OLDEST = (2, 32)
"""The oldest git that is known to do all we ask (GIT_CONFIG_GLOBAL came with 2.32)."""

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
# Without a network only these pass. HOME stays because ssh and Python need one; git's own reading
# of it is switched off below.

_KEPT_FOR_NETWORK = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "SSH_AUTH_SOCK",
    "XDG_CONFIG_HOME",
    "GIT_PROXY_COMMAND",
)
# A fetch by id cannot bring other bytes than that id's, so the user's proxy, certificates and
# ~/.gitconfig (url.insteadOf, http.proxy, credential helpers) may say how to get there.

_ALWAYS = {
    "LC_ALL": "C",  # messages are matched and shown in English
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",  # /etc/gitconfig: safe.directory, autocrlf, hooks of the site
    "GIT_ATTR_NOSYSTEM": "1",  # /etc/gitattributes: filters, eol
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would give other bytes for an id
    "GIT_OPTIONAL_LOCKS": "0",  # reading must not write an index
    "GIT_TERMINAL_PROMPT": "0",  # a password prompt would hang a CI run
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_NO_LAZY_FETCH": "1",  # git 2.44+: a missing object is missing, never a download
    "GIT_ADVICE": "0",
}

_SETTINGS = (
    ("core.hooksPath", os.devnull),  # reference-transaction runs even in bare repositories
    ("core.attributesFile", os.devnull),  # ~/.config/git/attributes: eol and filters
    ("core.excludesFile", os.devnull),
    ("core.autocrlf", "false"),
    ("core.fsmonitor", "false"),  # a path to a program, and started for a mere status
    ("core.quotePath", "true"),
    ("core.commitGraph", "false"),  # a stale graph file hides commits
    ("core.useReplaceRefs", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),  # a gc in the middle of another process's work
    ("maintenance.auto", "false"),
    ("protocol.version", "2"),
    ("protocol.ext.allow", "never"),  # ext:: runs a command line
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("advice.detachedHead", "false"),
)

STILL = 120
"""Seconds without a byte after which an http server is given up. One that is at work says so
every few seconds (git's uploadpack.keepAlive)."""

_NO_NEWS = (
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "fatal: the remote end hung up unexpectedly",
    "fatal: early EOF",
)
"""Lines of git that follow the one which says what is wrong."""


@functools.cache
def executable() -> str:
    """The path of git. Raises EnvironmentFault(git) where there is none."""
    found = shutil.which("git")
    if found is None:
        raise EnvironmentFault(
            Finding(
                "git",
                "git is not installed",
                expected=f"git {OLDEST[0]}.{OLDEST[1]} or newer on PATH",
                found="no executable named git",
                next="install git (apt-get install git)",
            )
        )
    return found


def version() -> tuple[int, ...]:
    """git's version, (2, 39, 5) say. Raises EnvironmentFault(git) where it is too old for us."""
    words = run(["version"]).decode("ascii", "replace").split()
    found = tuple(int(n) for n in words[2].split(".")[:3] if n.isdigit())
    if found < OLDEST:
        raise EnvironmentFault(
            Finding(
                "git",
                "git is too old",
                expected=f"git {OLDEST[0]}.{OLDEST[1]} or newer",
                found=words[2],
                next="install a newer git",
            )
        )
    return found


def environment(*, network: bool = False, ceiling: str = "") -> dict[str, str]:
    """The environment every git of ours runs in.

    network: also pass what tells how to reach a server (proxy, certificates, ssh, ~/.gitconfig).
    ceiling: folder above which no repository is looked for: below an unrelated repository
    `git apply` silently does nothing.
    """
    names = (*_KEPT, *_KEPT_FOR_NETWORK) if network else _KEPT
    env = {name: os.environ[name] for name in names if name in os.environ}
    env.update(_ALWAYS)
    if not network:
        env["GIT_CONFIG_GLOBAL"] = os.devnull
        # Before git 2.44 a missing object is fetched, by a command that the repository names.
        env["GIT_ALLOW_PROTOCOL"] = "none"
        env["XDG_CONFIG_HOME"] = os.devnull
    if ceiling:
        env["GIT_CEILING_DIRECTORIES"] = ceiling
    return env


REMOTE = "patchkit"
"""How a git command line names the server of `remote`."""


_HELPER = (
    '!f() { test "$1" != get || '
    """printf 'username=%s\\npassword=%s\\n' "$PATCHKIT_USER" "$PATCHKIT_PASSWORD"; }; f"""
)
"""A credential helper of ours: how git is told a password that stands in no address."""


def remote(url: str) -> dict[str, str]:
    """Environment variables that make `REMOTE` the server at `url`.

    On a command line (git's own, or that of the helper it starts) the address could be read by
    everybody on the machine, and a partial fetch would write it into the repository's
    configuration: it may hold a password. That is given apart, for that host alone, and no helper
    of the user's gets to keep it.
    """
    found = login(url)
    rows = [(f"remote.{REMOTE}.url", found.address)]
    env: dict[str, str] = {}
    if found.password is not None:
        rows += [("credential.helper", ""), (f"credential.{found.base}.helper", _HELPER)]
        env = {"PATCHKIT_USER": found.user, "PATCHKIT_PASSWORD": found.password}
    elif found.user:
        rows.append((f"credential.{found.base}.username", found.user))
    env["GIT_CONFIG_COUNT"] = str(len(rows))
    for number, (key, value) in enumerate(rows):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def command(
    args: Sequence[str], git_dir: str | None = None, settings: Mapping[str, str] | None = None
) -> list[str]:
    """A git command line: our settings first, then `args`.

    An explicit --git-dir also skips the ownership check, which refuses a cache folder that is
    mounted into a container under another uid.
    """
    line = [executable()]
    slow = (("http.lowSpeedLimit", "1"), ("http.lowSpeedTime", str(STILL)))
    for key, value in (*_SETTINGS, *slow, *(settings or {}).items()):
        line += ["-c", f"{key}={value}"]
    if git_dir is not None:
        line.append(f"--git-dir={git_dir}")
    return [*line, *args]


def run(
    args: Sequence[str],
    *,
    git_dir: str | None = None,
    input: bytes | None = None,
    network: bool = False,
    cwd: str | None = None,
    timeout: float = 600.0,
    settings: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Run one git command to its end and give its standard output.

    timeout: seconds. extra: environment variables beyond `environment()`.
    Raises EnvironmentFault(git) with git's own last words where it fails.
    """
    done = attempt(
        args,
        git_dir=git_dir,
        input=input,
        network=network,
        cwd=cwd,
        timeout=timeout,
        settings=settings,
        extra=extra,
    )
    if done.returncode != 0:
        raise fault(args, done.returncode, done.stderr)
    return done.stdout


def attempt(
    args: Sequence[str],
    *,
    git_dir: str | None = None,
    input: bytes | None = None,
    network: bool = False,
    cwd: str | None = None,
    timeout: float = 600.0,
    settings: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Like `run`, but the exit status is for the caller to judge."""
    env = environment(network=network, ceiling=os.path.dirname(git_dir or cwd or ""))
    env.update(extra or {})
    try:
        return subprocess.run(
            command(args, git_dir, settings),
            input=input if input is not None else b"",
            capture_output=True,
            env=env,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            Finding(
                "git",
                f"git {args[0]} did not end within {timeout:g} s",
                next="run the command again",
            )
        ) from None
    except OSError as error:
        raise EnvironmentFault(
            Finding("git", f"git cannot be started: {error.strerror or error}")
        ) from error


def fault(args: Sequence[str], status: int | None, stderr: bytes) -> EnvironmentFault:
    """A failed git command as a finding; credentials in addresses are blotted out."""
    lines = [line for line in blotted(stderr.decode("utf-8", "replace")).splitlines() if line]
    news = [line for line in lines if line.strip() not in _NO_NEWS] or lines
    said = [line for line in news if line.startswith(("fatal:", "error:"))] or news
    last = said[-1] if said else "no message"
    return EnvironmentFault(
        Finding(
            "git",
            f"git {args[0]} failed: {last}",
            found=f"exit status {status}",
            details=tuple(line for line in news if line != last)[-5:],
        )
    )
