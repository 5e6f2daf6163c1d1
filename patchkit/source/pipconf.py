"""How the user's pip reaches a package index: its configuration files and PIP_ variables.

Read, never written, and never shown: addresses may hold passwords. pip's own order is kept:
site-wide, user, environment's (`sys.prefix`), PIP_CONFIG_FILE, then variables; of a file the
sections [global] and [download].
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_INDEX = "https://pypi.org/simple"
MOST_TRIES = 100
LONGEST = 3600.0
"""Seconds of the longest timeout: sockets take no endless one."""


@dataclass(frozen=True)
class PipSettings:
    """indexes: addresses or folders of simple APIs, in order. find_links: those of folders, pages
    and files.

    proxy, cert, client_cert: as pip's options of these names, "" where unset. trusted: hosts, some
    with a port, whose certificate is not checked. timeout: seconds without data. retries: further
    tries.
    """

    indexes: tuple[str, ...] = (DEFAULT_INDEX,)
    find_links: tuple[str, ...] = ()
    proxy: str = ""
    cert: str = ""
    client_cert: str = ""
    trusted: frozenset[str] = frozenset()
    timeout: float = 15.0
    retries: int = 4


def pip_settings(environ: Mapping[str, str] | None = None) -> PipSettings:
    """The settings that `pip download` would use now."""
    env = os.environ if environ is None else environ
    values: dict[str, str] = {}
    for path in _files(env):
        _read(path, values)
    for name, value in env.items():
        if name.startswith("PIP_") and value:
            values[name[4:].lower().replace("_", "-")] = value
    indexes = [values.get("index-url") or DEFAULT_INDEX, *values.get("extra-index-url", "").split()]
    if values.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = []
    return PipSettings(
        indexes=tuple(indexes),
        find_links=tuple(values.get("find-links", "").split()),
        proxy=values.get("proxy", ""),
        # requests, which pip is built on, obeys these two as well
        cert=values.get("cert") or env.get("REQUESTS_CA_BUNDLE") or env.get("CURL_CA_BUNDLE", ""),
        client_cert=values.get("client-cert", ""),
        trusted=frozenset(values.get("trusted-host", "").split()),
        timeout=_number(values.get("timeout") or values.get("default-timeout"), 15.0) or 15.0,
        retries=int(min(_number(values.get("retries"), 4.0), MOST_TRIES)),
    )


def _files(env: Mapping[str, str]) -> list[str]:
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = env.get("HOME", "")
    user = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    site = (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    paths = [os.path.join(folder, "pip", "pip.conf") for folder in reversed(site) if folder]
    paths.append("/etc/pip.conf")
    if home:
        paths += [os.path.join(home, ".pip", "pip.conf"), os.path.join(user, "pip", "pip.conf")]
        if sys.platform == "darwin":
            paths.append(os.path.join(home, "Library", "Application Support", "pip", "pip.conf"))
    paths.append(os.path.join(sys.prefix, "pip.conf"))
    if named:
        paths.append(named)
    return paths


def _read(path: str, values: dict[str, str]) -> None:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        with open(path, encoding="utf-8") as stream:
            parser.read_file(stream)
    except (OSError, UnicodeDecodeError, Error):
        return  # pip itself will say what is wrong with it
    for section in ("global", "download"):
        if parser.has_section(section):
            for name, value in parser.items(section):
                values[name.replace("_", "-")] = value


def _number(text: str | None, default: float) -> float:
    """A number as it is stated, from 0 to `LONGEST`; the default for what is none."""
    try:
        found = float(text) if text else default
    except ValueError:
        return default
    return min(found, LONGEST) if found >= 0 and not math.isnan(found) else default
