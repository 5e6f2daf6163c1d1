"""Which wheel an overlay is built on: the pin's own, or one that is named with its digest."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from patchkit.errors import EnvironmentFault, Finding, Refused, UsageFault, Where
from patchkit.series.pins import Pin, Upstream
from patchkit.source.base import Progress, silent
from patchkit.source.pinned import fetch_pinned

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,199}\.whl")


@dataclass(frozen=True)
class BaseWheel:
    """Where the wheel lies, and what it must be. pinned: the pin itself states its digest."""

    path: str
    sha256: str
    pinned: bool


@dataclass(frozen=True)
class WheelName:
    """A wheel's file name, taken apart. rest: build tag, if any, and the three compressed tags;
    tags: all of them in full, sorted."""

    name: str
    version: str
    rest: str
    tags: tuple[str, ...]


def is_wheel_name(text: str) -> bool:
    """Whether a text is a plain file name of a wheel, without folders, spaces or quotes."""
    return _NAME.fullmatch(text) is not None


def wheel_name(file_name: str) -> WheelName:
    """Take a wheel's file name apart. Raises Refused(unsupported)."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        _, _, _, tags = parse_wheel_filename(file_name)
    except InvalidWheelFilename as error:
        raise Refused(
            Finding(
                "unsupported",
                f"that is not the name of a wheel: {error}",
                Where(file=file_name),
                expected="NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
                found=file_name,
                next="give the file the name under which it was published",
            )
        ) from None
    name, version, rest = file_name.removesuffix(".whl").split("-", 2)
    return WheelName(name, version, rest, tuple(sorted(map(str, tags))))


def machine() -> str:
    """The architecture of this machine, as wheels name it."""
    found = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)


def pinned_wheel(pin: Pin, arch: str) -> str:
    """Name of the pin's wheel for `arch`. Raises Refused(pin-incomplete), UsageFault."""
    names = [name for name in sorted(pin.files) if name.endswith(".whl")]
    fit = [name for name in names if name.endswith((f"_{arch}.whl", "-any.whl"))]
    if len(fit) == 1:
        return fit[0]
    if fit:
        raise UsageFault.because(
            f"pin {pin.name} states several wheels for {arch}: {', '.join(fit)}",
            next=f"--base-wheel {fit[0]}",
        )
    raise Refused(
        Finding(
            "pin-incomplete",
            f"pin {pin.name} states no wheel for {arch}",
            expected=f'a line "….whl" = "sha256:…" in [pins."{pin.name}".files]',
            found=", ".join(names) or "no wheels",
            next="--base-wheel FILE --sha256 DIGEST, or --arch with one that is there",
        )
    )


def choose(
    upstream: Upstream,
    pin: Pin,
    *,
    arch: str,
    given: str | None,
    sha256: str | None,
    root: str,
    offline: bool = False,
    progress: Progress = silent,
) -> BaseWheel:
    """The base wheel, fetched where it is not here yet; its digest is verified when it is opened.

    given: a file, an address, or a name that the pin states. root: the cache folder. Raises
    UsageFault, Refused, EnvironmentFault.
    """
    if given is None or given in pin.files:
        if sha256 is not None:
            raise UsageFault.because("--sha256 goes with --base-wheel FILE: the pin states its own")
        name = given or pinned_wheel(pin, arch)
        path = fetch_pinned(upstream, pin, name, root=root, offline=offline, progress=progress)
        return BaseWheel(path, pin.files[name].removeprefix("sha256:"), True)
    if urlsplit(given).scheme not in ("http", "https"):
        path = os.path.abspath(given)
        wanted = _digest(sha256) or pin.files.get(os.path.basename(path), "")
        if not wanted:
            raise _no_digest(given)
        if not os.path.isfile(path):
            raise UsageFault(
                Finding("usage", "there is no such wheel", Where(file=path), expected="a file")
            )
        return BaseWheel(path, wanted.removeprefix("sha256:"), False)
    wanted = _digest(sha256)
    if not wanted:
        raise _no_digest(given)
    return BaseWheel(_fetched(given, wanted, root, offline, progress), wanted, False)


def _fetched(url: str, sha256: str, root: str, offline: bool, progress: Progress) -> str:
    from patchkit.source.fetch import download
    from patchkit.source.pipconf import pip_settings
    from patchkit.store.cache import DOWNLOADS

    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if not _NAME.fullmatch(name):
        raise UsageFault.because(f"the address does not end in the name of a wheel: {name}")
    # Other indexes have other wheels of the same name, so each digest has a folder of its own.
    folder = os.path.join(root, DOWNLOADS, sha256[:16])
    if offline and not os.path.isfile(os.path.join(folder, name)):
        raise EnvironmentFault(
            Finding(
                "network",
                f"{name} is not in patchkit's cache, and --offline forbids fetching it",
                next="run the command once without --offline",
            )
        )
    return download(url, folder, name, sha256, pip_settings(), progress)


def _digest(text: str | None) -> str:
    if text is None:
        return ""
    found = _DIGEST.fullmatch(text.strip())
    if found is None:
        raise UsageFault.because("--sha256 takes 64 hex digits")
    return found[1].lower()


def _no_digest(given: str) -> UsageFault:
    return UsageFault.because(
        f"--base-wheel {given} needs its digest: nothing unverified is built on",
        next="add --sha256 DIGEST, from the page that published the wheel",
    )
