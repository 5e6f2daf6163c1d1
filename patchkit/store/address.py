"""Addresses of servers, which may hold a password: how they are shown and kept, and how git gets
what they hold.

Whatever is printed goes through `blotted`; whatever is written into a file (a patch's header, a
wheel's provenance) is `public`.
"""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(\S+)")
_AUTHORITY = re.compile(r"[^/?#]*")


def blotted(text: str) -> str:
    """`text` with the user part and the query of every address in it replaced by ***.

    The user part goes up to the last @: a password that should have been written with %2F or %40
    makes an address that nothing can use, and a message about it must not show its rest.
    """
    return _ADDRESS.sub(lambda found: _blotted(found[1], found[2]), text)


def _blotted(scheme: str, rest: str) -> str:
    if scheme.lower() == "file":
        return f"{scheme}://{rest}"
    _, at, rest = _parted(rest)
    place, query, _ = rest.partition("?")
    return f"{scheme}://{'***@' if at else ''}{place}{'?***' if query else ''}"


def _parted(rest: str) -> tuple[str, str, str]:
    """User part, @ or "", and the rest of what follows `://`."""
    authority = _AUTHORITY.match(rest)
    if authority is not None and not set("@:") & set(authority[0]):
        return "", "", rest  # a mere host: any @ is one of the path
    return rest.rpartition("@")


def public(address: str) -> str:
    """The address without password and query; of an ssh address the user stays, who is no secret.

    A path and an address of the form HOST:PATH are given back as they are.
    """
    scheme, colons, rest = address.partition("://")
    if not colons or scheme.lower() == "file":
        return address
    user, at, place = _parted(rest)
    place = place.partition("?")[0]
    if at and scheme.lower() == "ssh":
        return f"{scheme}://{user.partition(':')[0]}@{place}"
    return f"{scheme}://{place}"


def is_path(address: str) -> bool:
    """Whether a git address is a place on this machine."""
    return address.startswith(("/", "./", "../", "file:"))


@dataclass(frozen=True)
class Login:
    """address: a git address without what is secret in it. base: scheme, host and port, for which
    user and password are good; "" where there are none. password: None where only a user is named.
    """

    address: str
    base: str = ""
    user: str = ""
    password: str | None = None


def login(address: str) -> Login:
    """What an http(s) address says of the user; others are git's own business."""
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError:
        return Login(address)
    stated, at, host = parts.netloc.rpartition("@")
    if parts.scheme not in ("http", "https") or not at:
        return Login(address)
    user, colon, password = map(urllib.parse.unquote, stated.partition(":"))
    if not (user + password).isprintable():
        user = password = colon = ""  # a line break would be another line to git
    return Login(
        urllib.parse.urlunsplit(parts._replace(netloc=host)),
        f"{parts.scheme}://{host}",
        user,
        password if colon else None,
    )
