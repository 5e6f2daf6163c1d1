"""The project's own folder for what it makes: build/."""

from __future__ import annotations

import os

from patchkit.derive.project import Project
from patchkit.errors import Finding, Refused, Where


def output_folder(project: Project, name: str) -> str:
    """The path of `name` in the project's folder `build`.

    Raises Refused(symlink-in-path) where either is a link: who gave the project away would say
    where on this machine is written.
    """
    build = os.path.join(project.folder, "build")
    at = os.path.join(build, name)
    for path in (build, at):
        if os.path.islink(path):
            raise Refused(
                Finding(
                    "symlink-in-path",
                    f"{os.path.relpath(path, project.folder)} is a symbolic link, to "
                    f"{os.readlink(path)}: it is not followed",
                    Where(file=path),
                    expected="a folder, or nothing",
                    found="a symbolic link",
                    next=f"remove it (rm {path}), or name the folder that is meant on the command "
                    "line, where the command has an option for it",
                )
            )
    return at
