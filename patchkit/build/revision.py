"""The project as it was at a revision of its own git repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchkit.errors import Finding, Refused, Where
from patchkit.store import git as store_git

if TYPE_CHECKING:
    from git import Commit, Repo


class Revision:
    """What the project in `folder` held at the revision `name`.

    It is the user's own repository, yet nothing that its settings name is run, and none of the
    caller's GIT_ variables leads elsewhere. Raises Refused(unsupported) where no repository holds
    the folder, or it knows no such revision.
    """

    def __init__(self, folder: str, name: str) -> None:
        self.folder = os.path.realpath(folder)
        self._repo = _repository(self.folder)
        self._commit = self._found(name)
        top = os.path.realpath(self._repo.working_tree_dir or self.folder)
        self._lead = [p for p in os.path.relpath(self.folder, top).split(os.sep) if p != os.curdir]

    @property
    def commit(self) -> str:
        """The commit's id."""
        return str(self._commit.hexsha)

    def read(self, path: str) -> bytes | None:
        """The file at `path` of the project; None where there was none."""
        try:
            found = self._commit.tree.join("/".join([*self._lead, *path.split("/")]))
        except KeyError:
            return None
        return bytes(found.data_stream.read()) if found.type == "blob" else None

    def _found(self, name: str) -> Commit:
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        # The project may stand below the repository's top.
        done = store_git.attempt(asked, cwd=self.folder, extra={"GIT_CEILING_DIRECTORIES": ""})
        if done.returncode != 0:
            raise self._unknown(name)
        return self._repo.commit(done.stdout.decode("ascii").strip())

    def _unknown(self, name: str) -> Refused:
        return Refused(
            Finding(
                "unsupported",
                "git knows no such revision here",
                Where(file=self.folder),
                expected="a branch, tag or commit of the project's repository",
                found=name or "an empty name",
                next="git log --oneline --all shows what is here; git fetch brings what is not",
            )
        )


@contextmanager
def _no_git_variables() -> Iterator[None]:
    """The process without the caller's GIT_ variables: they would say where the repository is."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GIT_")}
    try:
        yield
    finally:
        os.environ.update(taken)


def _repository(folder: str) -> Repo:
    """The repository whose work tree holds `folder`."""
    store_git.version()  # raises EnvironmentFault where there is none
    with _no_git_variables():
        from git import GitError, Repo

    try:
        with _no_git_variables():
            repo = Repo(folder, search_parent_directories=True)
    except (GitError, OSError, ValueError) as fault:
        raise Refused(
            Finding(
                "unsupported",
                "the project is in no git repository",
                Where(file=folder),
                expected="a project under git, whose history says what changed",
                found="no repository in this folder or above it",
                next="leave --affected-since out, which gives every cell",
            )
        ) from fault
    repo.git.update_environment(
        GIT_DIR=str(repo.git_dir),
        GIT_COMMON_DIR=str(repo.common_dir),
        GIT_OBJECT_DIRECTORY=os.path.join(repo.common_dir, "objects"),
        GIT_ALTERNATE_OBJECT_DIRECTORIES="",
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_NO_LAZY_FETCH="1",
        GIT_ALLOW_PROTOCOL="none",  # before git 2.44 that word is not known
        GIT_CONFIG_COUNT="0",
    )
    return repo
