"""What a new pin needs: a release's files and digests from the index, its commit from the tag."""

from __future__ import annotations

from dataclasses import dataclass

from patchkit.errors import EnvironmentFault, Finding
from patchkit.series.pins import Pin, Upstream
from patchkit.source.pinned import SDIST
from patchkit.store.repo import Store


@dataclass(frozen=True)
class Release:
    """files: name -> sha256 of the sdist (.tar.gz) and every wheel. notes: yanked, where the index
    says that upstream has taken it back."""

    files: dict[str, str]
    notes: tuple[Finding, ...] = ()


def release_of(upstream: Upstream, version: str) -> Release:
    """What pip's indexes have of `version`.

    Raises EnvironmentFault(network) where no index answers, has the release, or states digests.
    """
    from patchkit.source.index import normal_name, project_files
    from patchkit.source.pipconf import pip_settings

    project = upstream.pypi or upstream.name
    found: dict[str, str] = {}
    yanked: dict[str, str] = {}
    others: set[str] = set()
    for file in project_files(project, pip_settings()):
        name, release = _release_of(file.name)
        if name != normal_name(project):
            continue  # a folder of find-links holds other projects' files too
        if release == _normal(version) and file.sha256:
            found.setdefault(file.name, file.sha256)
            if file.yanked is not None and found[file.name] == file.sha256:
                yanked[file.name] = file.yanked
        else:
            others.add(release)
    if not found:
        raise EnvironmentFault(
            Finding(
                "network",
                f"no package index has files with digests of {project} {version}",
                expected=f"{project} {version}",
                found=f"releases {', '.join(_newest(others))}" if others else "no release",
                next="check the version, and pip's index-url",
            )
        )
    return Release(dict(sorted(found.items())), _yanked(project, version, yanked))


def _yanked(project: str, version: str, files: dict[str, str]) -> tuple[Finding, ...]:
    if not files:
        return ()
    reasons = sorted(set(filter(None, files.values())))
    return (
        Finding(
            "yanked",
            f"upstream has taken {project} {version} back"
            + (f": {'; '.join(reasons)}" if reasons else ", without a reason"),
            expected="a release that stands",
            found=f"yanked: {', '.join(sorted(files))}",
            next="see whether a later release will do; what is pinned works as it is",
            note=True,
        ),
    )


def tag_commit(store: Store, upstream: Upstream, *tags: str) -> str:
    """The commit that the first of `tags` that there is names at the git server; "" for none.

    Raises EnvironmentFault(network) where the server does not answer, Refused(bad-pins) where
    pins.toml names none.
    """
    from patchkit.source.remote import Server

    return Server(store, upstream, *tags).tag()


def tag_names(name: str, version: str) -> tuple[str, ...]:
    """How the tag of a pin may be called: as the pin, or as its release."""
    return tuple(dict.fromkeys((name, f"v{version}", version) if version else (name,)))


def version_of(pin: Pin) -> str:
    """The release that the pin's sdist is of, by its name; "" where it has none."""
    name = next((file for file in sorted(pin.files) if file.endswith(SDIST)), "")
    return name.removesuffix(SDIST).rpartition("-")[2]


def version_in(name: str) -> str:
    """The release that a pin's name states; "" where it states none."""
    from packaging.version import InvalidVersion, Version

    try:
        Version(name.removeprefix("v"))
    except InvalidVersion:
        return ""
    return name.removeprefix("v")


def _release_of(name: str) -> tuple[str, str]:
    """Project and version, in their normal forms, that a file name states; "" for others."""
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    try:
        if name.endswith(".tar.gz"):
            project, version = parse_sdist_filename(name)
            return project, str(version)
        if name.endswith(".whl"):
            project, version, _, _ = parse_wheel_filename(name)
            return project, str(version)
    except (InvalidSdistFilename, InvalidWheelFilename):
        pass
    return "", ""


def _normal(version: str) -> str:
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(version))
    except InvalidVersion:
        return version


def _newest(versions: set[str]) -> list[str]:
    from packaging.version import Version

    return [str(v) for v in sorted(map(Version, versions), reverse=True)[:5]]
