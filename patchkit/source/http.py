"""One GET over http(s) or file:, with the user's proxy, certificates and credentials.

Credentials come from the address or from ~/.netrc, go only to the server they are for, and stand
in no message: every address that is shown passes through `shown`.
"""

from __future__ import annotations

import base64
import os
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from http.client import HTTPException, HTTPResponse, InvalidURL, responses
from typing import IO, TYPE_CHECKING, Any, cast

from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.source.pipconf import PipSettings
from patchkit.store.address import blotted

if TYPE_CHECKING:
    import ssl

AGENT = "patchkit"


class Transient(Exception):
    """A fault that another try may not meet. `finding` says what it was."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def shown(url: str) -> str:
    """An address without user, password, query and fragment."""
    whole = blotted(url).replace("://***@", "://", 1)
    return whole if whole.startswith("file:") else whole.partition("?")[0].partition("#")[0]


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what a password is good for.

    Raises ValueError where the address cannot be read.
    """
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows within http(s) only, never from https to http, and takes no credentials along to
    another server."""

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
        old, new = origin(req.full_url), origin(newurl)
        if new[0] not in ("http", "https") or (old[0] == "https" and new[0] == "http"):
            raise urllib.error.URLError(f"a redirect to {new[0]}: {shown(newurl)} is not followed")
        clean, stated = split_user(newurl)
        made = super().redirect_request(req, fp, code, msg, cast("Any", headers), clean)
        kept = req.unredirected_hdrs.get("Authorization") if old == new else None
        if made is not None and (stated or kept):
            made.add_unredirected_header("Authorization", basic(stated) if stated else str(kept))
        return made


class _Https(urllib.request.HTTPSHandler):
    """Reads the certificates when a server wants some: of http alone they say nothing."""

    def __init__(self, settings: PipSettings) -> None:
        super().__init__()
        self._settings = settings

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        from http.client import HTTPSConnection

        _, host, port = origin(req.full_url)
        context = _context(self._settings, host, port)
        return self.do_open(HTTPSConnection, req, context=context)


def open_url(url: str, settings: PipSettings, accept: str = "*/*") -> HTTPResponse:
    """The open answer to a GET; the caller closes it.

    Raises Transient for what may pass (no connection, time out, 429, 5xx), EnvironmentFault
    (network) for what will not.
    """
    clean, credentials = _credentials(url)
    request = urllib.request.Request(clean, headers={"User-Agent": AGENT, "Accept": accept})
    if credentials:
        request.add_unredirected_header("Authorization", basic(credentials))
    try:
        answer = _opener(settings).open(request, timeout=settings.timeout)
    except urllib.error.HTTPError as error:
        error.close()
        finding = _refusal(clean, error.code)
        if error.code == 429 or error.code >= 500:
            raise Transient(finding) from None
        raise EnvironmentFault(finding) from None
    except (InvalidURL, UnicodeError, ValueError):
        # Its own words may repeat an address, a proxy's or a redirect's, with a password in it.
        raise EnvironmentFault(_unreadable(clean)) from None
    except (urllib.error.URLError, HTTPException, OSError) as error:
        raise Transient(unreachable(clean, error, settings.timeout)) from None
    return cast("HTTPResponse", answer)


def basic(credentials: str) -> str:
    """The header of `user:password`."""
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def stated_length(answer: HTTPResponse) -> int:
    """The bytes that an answer says it has; 0 where it does not say."""
    text = (answer.headers.get("Content-Length") or "").strip()
    return int(text) if text.isdecimal() and len(text) < 20 else 0


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


def _unreadable(url: str) -> Finding:
    return Finding(
        "network",
        f"{shown(url)} cannot be asked: the address, or that of its proxy or redirect, is none",
        expected="https://HOST/…",
        found=shown(url),
        next="mend pip's index-url and proxy; in a password %2F stands for /, %40 for @, %23 for #",
    )


def split_user(url: str) -> tuple[str, str]:
    """The address without its user part, and that as `user:password`; "" where it has none."""
    parts = urllib.parse.urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), urllib.parse.unquote(user)


def _credentials(url: str) -> tuple[str, str]:
    """The address without its user part, and `user:password` for its host ("" for none)."""
    try:
        scheme, host, _ = origin(url)
        clean, stated = split_user(url)
    except ValueError:
        raise EnvironmentFault(_unreadable(url)) from None
    if scheme not in ("http", "https", "file"):
        kind = f"of the kind {scheme}: is not fetched" if scheme else "has no https: before it"
        raise EnvironmentFault(
            Finding(
                "network",
                f"{shown(url)}: an address that {kind}",
                expected="https:, http: or file:",
                found=shown(url),
                next="mend pip's index-url",
            )
        )
    return clean, stated or _from_netrc(host)


def _from_netrc(host: str) -> str:
    from netrc import NetrcParseError, netrc

    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    try:
        found = netrc(path).authenticators(host) if host and os.path.exists(path) else None
    except (OSError, NetrcParseError, UnicodeDecodeError):
        return ""
    return f"{found[0]}:{found[2]}" if found else ""


def _opener(settings: PipSettings) -> urllib.request.OpenerDirector:
    proxies = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), _Https(settings), _Redirects()
    )


def _context(settings: PipSettings, host: str, port: int | None) -> ssl.SSLContext:
    """How the certificate of a host is judged, and which one is shown to it."""
    import ssl

    cert = settings.cert
    try:
        if host in settings.trusted or f"{host}:{port}" in settings.trusted:
            context = ssl._create_unverified_context()
        elif cert and os.path.isdir(cert):
            context = ssl.create_default_context(capath=cert)
        else:
            context = ssl.create_default_context(cafile=cert or None)
    except OSError as error:
        raise EnvironmentFault(_no_certificate("cert", cert, error)) from None
    if settings.client_cert:
        try:
            context.load_cert_chain(settings.client_cert)
        except OSError as error:
            fault = _no_certificate("client-cert", settings.client_cert, error)
            raise EnvironmentFault(fault) from None
    return context


def _no_certificate(option: str, path: str, error: OSError) -> Finding:
    why = getattr(error, "reason", "") or error.strerror or str(error)
    return Finding(
        "network",
        f"pip's {option} cannot be used: {path}: {why}",
        Where(file=path),
        expected="a file of certificates in PEM form",
        found=why,
        next=f"mend pip's {option}, or leave it out",
    )
