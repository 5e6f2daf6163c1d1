"""One GET over http(s) or file:, with the user's proxy, certificates and credentials.

Credentials come from the address or from ~/.netrc, go only to the host they are for, and stand in
no message: every address that is shown passes through `shown`.
"""

from __future__ import annotations

import base64
import os
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from http.client import HTTPException, HTTPResponse, responses
from typing import IO, Any, cast

from patchkit.errors import EnvironmentFault, Finding
from patchkit.source.pipconf import PipSettings

AGENT = "patchkit"


class Transient(Exception):
    """A fault that another try may not meet. `finding` says what it was."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def shown(url: str) -> str:
    """An address without user, password and query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows within http(s) only, never from https to http, and drops credentials on the way."""

    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise urllib.error.URLError(
                f"a redirect to {new.scheme}: {shown(newurl)} is not followed"
            )
        made = super().redirect_request(req, fp, code, msg, cast("Any", headers), newurl)
        if made is not None and old.hostname != new.hostname:
            made.remove_header("Authorization")
        return made


def open_url(url: str, settings: PipSettings, accept: str = "*/*") -> HTTPResponse:
    """The open answer to a GET; the caller closes it.

    Raises Transient for what may pass (no connection, time out, 429, 5xx), EnvironmentFault
    (network) for what will not.
    """
    clean, credentials = _credentials(url)
    request = urllib.request.Request(clean, headers={"User-Agent": AGENT, "Accept": accept})
    if credentials:
        token = base64.b64encode(credentials.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    host = urllib.parse.urlsplit(clean).hostname or ""
    try:
        answer = _opener(settings, host).open(request, timeout=settings.timeout)
    except urllib.error.HTTPError as error:
        error.close()
        finding = _refusal(clean, error.code)
        if error.code == 429 or error.code >= 500:
            raise Transient(finding) from None
        raise EnvironmentFault(finding) from None
    except (urllib.error.URLError, HTTPException, OSError) as error:
        raise Transient(unreachable(clean, error, settings.timeout)) from None
    return cast("HTTPResponse", answer)


def unreachable(url: str, error: Exception, timeout: float) -> Finding:
    """A connection that failed, as a finding."""
    cause = getattr(error, "reason", None) or error
    if isinstance(cause, TimeoutError) or "timed out" in str(cause):
        why = f"no data for {timeout:g} s"
    else:
        why = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    hint = "check the network and the proxy, and run the command again"
    if "CERTIFICATE_VERIFY_FAILED" in str(cause):
        why = f"its certificate is not trusted ({getattr(cause, 'verify_message', '') or why})"
        hint = "name the certificates of your network: PIP_CERT=FILE"
    return Finding(
        "network",
        f"{shown(url)} cannot be fetched: {why}",
        expected="an answer",
        found=why,
        next=hint,
    )


def _refusal(url: str, code: int) -> Finding:
    # The server's own words are not shown: they may repeat an address with a password in it.
    reason = "a redirect that is not followed" if 300 <= code < 400 else responses.get(code, "")
    hint = "run the command again"
    if code in (401, 403, 407):
        hint = "give pip the credentials of that index (its address, or ~/.netrc)"
    elif code == 404:
        hint = "check the name in pins.toml and pip's index-url"
    return Finding(
        "network",
        f"{shown(url)} was refused: {code} {reason}",
        expected="200 OK",
        found=f"{code} {reason}",
        next=hint,
    )


def _credentials(url: str) -> tuple[str, str]:
    """The address without its user part, and `user:password` for its host ("" for none)."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise EnvironmentFault(
            Finding(
                "network",
                f"an address of the kind {parts.scheme}: is not fetched",
                expected="https:, http: or file:",
                found=shown(url),
                next="mend pip's index-url",
            )
        )
    user, at, host = parts.netloc.rpartition("@")
    clean = urllib.parse.urlunsplit(parts._replace(netloc=host))
    if at:
        return clean, urllib.parse.unquote(user)
    return clean, _from_netrc(parts.hostname or "")


def _from_netrc(host: str) -> str:
    from netrc import NetrcParseError, netrc

    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    try:
        found = netrc(path).authenticators(host) if host and os.path.exists(path) else None
    except (OSError, NetrcParseError):
        return ""
    return f"{found[0]}:{found[2]}" if found else ""


def _opener(settings: PipSettings, host: str) -> urllib.request.OpenerDirector:
    import ssl

    if host in settings.trusted:
        context = ssl._create_unverified_context()
    elif settings.cert and os.path.isdir(settings.cert):
        context = ssl.create_default_context(capath=settings.cert)
    elif settings.cert and os.path.exists(settings.cert):
        context = ssl.create_default_context(cafile=settings.cert)
    else:
        context = ssl.create_default_context()
    if settings.client_cert:
        context.load_cert_chain(settings.client_cert)
    proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPSHandler(context=context),
        _Redirects(),
    )
