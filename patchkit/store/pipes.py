"""The long-lived `git cat-file --batch`: objects by id, each checked against its id.

git trusts the ids in its own files; we do not, because the store is a cache in the user's folder
and what is read from it becomes a patched release.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from patchkit.errors import EnvironmentFault, Finding
from patchkit.store import git
from patchkit.store.pack import object_id

_IN_FLIGHT = 400
"""Requests written before answers are read: 41 bytes each, far below a pipe's 64 KiB."""
_KEPT = 4096
"""Trees kept in memory: of a project of 7,000 files there are 1,000, 2 kB each."""


class Missing(EnvironmentFault):
    """The object is not in the store. oid: its id."""

    def __init__(self, oid: str) -> None:
        super().__init__(
            Finding(
                "verify-failed",
                "an object is not in patchkit's cache any more",
                expected=oid,
                found="no such object",
                next="patchkit cache --clear, then run the command again",
            )
        )
        self.oid = oid


class ObjectReader:
    """Reads objects. The process starts with the first request and ends with `close`.

    alternates: another repository's object folder that is read as well; that repository's
    configuration is not.
    """

    def __init__(self, git_dir: str, alternates: str = "") -> None:
        self.git_dir = git_dir
        self._env = also_reading(alternates)
        self._process: subprocess.Popen[bytes] | None = None
        self._trees: dict[str, bytes] = {}

    def __enter__(self) -> ObjectReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next request starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # it is gone already
                    pass
        process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    git.command(["cat-file", "--batch"], self.git_dir),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=git.environment() | self._env,
                    bufsize=1 << 16,
                )
            except OSError as error:
                raise EnvironmentFault(
                    Finding("git", f"git cannot be started: {error.strerror or error}")
                ) from error
        return self._process

    def read(self, oid: str, kind: str) -> bytes:
        """The content of one object.

        kind: "blob", "tree" or "commit". Raises Missing, EnvironmentFault(verify-failed) where
        the bytes do not have the id, EnvironmentFault(git) where git fails.
        """
        (data,) = self.read_many((oid,), kind)
        return data

    def read_any(self, oid: str) -> tuple[str, bytes]:
        """Kind and content of one object; faults as for `read`."""
        ((kind, data),) = self._answers([oid], "")
        return kind, data

    def absent(self, oids: Iterable[str]) -> list[str]:
        """Those of `oids` that are not there. Asks a process of its own."""
        wanted = list(dict.fromkeys(oids))
        out = git.run(
            ["cat-file", "--batch-check=%(objectname)"],
            git_dir=self.git_dir,
            input="".join(f"{oid}\n" for oid in wanted).encode("ascii"),
            extra=self._env,
        )
        lines = out.decode("ascii").splitlines()
        return [oid for oid, line in zip(wanted, lines, strict=True) if line.endswith(" missing")]

    def trees(self, oids: Sequence[str]) -> list[bytes]:
        """The contents of tree objects, asked for in one go; faults as for `read`.

        They are kept: a folder that is read from is often written on.
        """
        new = [oid for oid in dict.fromkeys(oids) if oid not in self._trees]
        if len(self._trees) + len(new) > _KEPT:
            self._trees.clear()
            new = list(dict.fromkeys(oids))
        self._trees.update(zip(new, self.read_many(new, "tree"), strict=True))
        return [self._trees[oid] for oid in oids]

    def read_many(self, oids: Iterable[str], kind: str) -> Iterator[bytes]:
        """The contents of many objects in their order; faults as for `read`."""
        batch: list[str] = []
        for oid in oids:
            batch.append(oid)
            if len(batch) >= _IN_FLIGHT:
                yield from (data for _, data in self._answers(batch, kind))
                batch = []
        if batch:
            yield from (data for _, data in self._answers(batch, kind))

    def _answers(self, oids: list[str], kind: str) -> Iterator[tuple[str, bytes]]:
        process = self._started()
        assert process.stdin is not None
        done = 0
        try:
            process.stdin.write(("\n".join(oids) + "\n").encode("ascii"))
            process.stdin.flush()
            for oid in oids:
                answer = self._answer(oid, kind)
                done += 1
                yield answer
        except (OSError, ValueError) as error:
            self.close()
            raise _died(self.git_dir) from error
        finally:
            if done < len(oids):
                self.close()  # answers are still in the pipe: the next reader must not get them

    def _answer(self, oid: str, kind: str) -> tuple[str, bytes]:
        """One answer. kind: what the object must be; "" for anything."""
        assert self._process is not None
        assert self._process.stdout is not None
        stdout = self._process.stdout
        head = stdout.readline()
        if head.endswith(b" missing\n"):
            raise Missing(oid)
        words = head.decode("ascii", "replace").split()
        if len(words) != 3:
            raise _died(self.git_dir)
        size = int(words[2])
        data = stdout.read(size + 1)
        if len(data) != size + 1 or data[-1:] != b"\n":
            raise _died(self.git_dir)
        data = data[:-1]
        found = object_id(words[1], data).hex()
        if found != oid or (kind and words[1] != kind):
            raise EnvironmentFault(damaged(oid, kind or words[1], f"{words[1]} {found}"))
        return words[1], data


def also_reading(objects: str) -> dict[str, str]:
    """The environment in which git reads the object folder `objects` too ("" for none)."""
    if not objects:
        return {}
    quoted = objects.replace("\\", "\\\\").replace('"', '\\"')
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}  # quoted: it may hold a colon


def damaged(oid: str, kind: str, found: str) -> Finding:
    """An object of the store that is not what its id says."""
    return Finding(
        "verify-failed",
        f"a {kind} in patchkit's cache is not what its id says",
        expected=oid,
        found=found,
        next="patchkit cache --clear, then run the command again",
    )


def _died(git_dir: str) -> EnvironmentFault:
    return EnvironmentFault(
        Finding(
            "git",
            "git cat-file ended in the middle of an answer",
            expected="a whole object",
            found=f"end of file, reading {git_dir}",
            next="patchkit cache --clear, then run the command again",
        )
    )
