"""A folder that is read and written only inside: no link followed, no unsafe name used."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File, path_bytes, path_text
from patchkit.engine.paths import unsafe
from patchkit.errors import EnvironmentFault, Finding, Refused, Where

_START = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _START | os.O_NOFOLLOW
_PERMISSIONS = {REGULAR: 0o644, EXECUTABLE: 0o755}
OWN = ".patchkit"
"""The folder in which patchkit keeps its own state inside a target."""


@dataclass(frozen=True)
class Stat:
    """What stands at a path: its git mode (None for a folder or a special file) and links."""

    mode: int | None
    links: int
    folder: bool


@dataclass(frozen=True)
class Bits:
    """Permission bits (as chmod takes them) and owner of a file, where git's mode says too little:
    in an installed package both stay as its installer chose them."""

    mode: int
    uid: int
    gid: int


ANOTHER = "run as who may write that folder"


def disk_fault(error: OSError, path: str, doing: str) -> EnvironmentFault:
    """The system's refusal as a finding: what was tried, where, and what to do."""
    cause = error.strerror or str(error)
    hint = {
        errno.ENOSPC: "free some space and run the command again",
        errno.EACCES: ANOTHER,
        errno.EPERM: ANOTHER,
        errno.EROFS: f"the file system is read-only: {ANOTHER}",
    }.get(error.errno or 0, "mend the cause and run the command again")
    return EnvironmentFault(
        Finding("disk", f"cannot {doing} {path}: {cause}", Where(file=path), next=hint)
    )


def check_name(path: str) -> None:
    """Raise Refused(path-escape) where `path` may not be used below a root."""
    reason = unsafe(path)
    if reason is not None:
        raise Refused(
            Finding(
                "path-escape",
                f"the path may not be used: {reason}",
                Where(file=path),
                expected="a path inside the tree",
                found=path,
            )
        )


class Root:
    """A folder on disk; `at` is its path. It is one of the engine's trees."""

    def __init__(self, at: str | os.PathLike[str]) -> None:
        self.at = os.fspath(at)
        self._held: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the folder open for the time of the block, in which many files of it are read."""
        try:
            held = self._held = os.open(self.at, _START)
        except OSError:
            yield  # each reading says for itself what is wrong
            return
        try:
            yield
        finally:
            self._held = None
            os.close(held)

    # -- walking ---------------------------------------------------------------------------
    @contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """The open folder that holds `path`, and its last component as bytes."""
        check_name(path)
        *folders, last = path_bytes(path).split(b"/")
        fd = os.open(self.at, _START) if self._held is None else self._held
        try:
            for name in folders:
                try:
                    inner = os.open(name, _FOLDER, dir_fd=fd)
                except FileNotFoundError:
                    if not make:
                        raise
                    with _ignored(FileExistsError):
                        os.mkdir(name, 0o755, dir_fd=fd)
                        os.chmod(name, 0o755, dir_fd=fd)
                    inner = os.open(name, _FOLDER, dir_fd=fd)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, fd):
                        raise _link_in_path(path, path_text(name)) from None
                    raise
                if fd != self._held:
                    os.close(fd)
                fd = inner
            yield fd, last
        finally:
            if fd != self._held:
                os.close(fd)

    # -- reading ---------------------------------------------------------------------------
    def stat(self, path: str) -> Stat | None:
        """What stands at `path`, links not followed; None where nothing does."""
        try:
            with self._folder_of(path) as (fd, name):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stat(_git_mode(found), found.st_nlink, stat.S_ISDIR(found.st_mode))

    def get(self, path: str, limit: int | None = None) -> File | None:
        """The file at `path` (the engine's Tree protocol). None for folders and special files.

        Raises Refused(too-large) above `limit` bytes, Refused(symlink-in-path) where a folder on
        the way is a link.
        """
        try:
            with self._folder_of(path) as (fd, name):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                mode = _git_mode(found)
                if mode is None:
                    return None
                if mode == SYMLINK:
                    return File(os.readlink(name, dir_fd=fd), SYMLINK)
                if limit is not None and found.st_size > limit:
                    raise Refused(
                        Finding(
                            "too-large",
                            f"{path} is larger than {limit} bytes",
                            Where(file=path),
                            expected=f"at most {limit} bytes",
                            found=f"{found.st_size} bytes",
                        )
                    )
                # O_NONBLOCK: a name that turned into a FIFO since the stat must not hang us.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                handle = os.open(name, flags, dir_fd=fd)
                try:
                    return File(_read(handle, found.st_size), mode)
                finally:
                    os.close(handle)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise disk_fault(error, path, "read") from error

    def is_folder(self, path: str) -> bool:
        """Whether a folder stands at `path`."""
        if path == "":
            return os.path.isdir(self.at)
        found = self.stat(path)
        return found is not None and found.folder

    def named(self, name: str) -> list[str]:
        """Paths whose last part is `name`, sorted."""
        return [p for p in self.walk() if p.rpartition("/")[2] == name]

    def walk(self, below: str = "") -> Iterator[str]:
        """Every file and link below, sorted, `.git` and patchkit's own folder left out."""
        base = (
            os.path.join(os.fsencode(self.at), path_bytes(below)) if below else os.fsencode(self.at)
        )
        for folder, folders, files in os.walk(base):
            links = [d for d in folders if os.path.islink(os.path.join(folder, d))]
            folders[:] = sorted(
                d for d in folders if d not in (b".git", b".patchkit") and d not in links
            )
            inner = os.path.relpath(folder, base)
            parts = [] if inner == b"." else [path_text(inner)]
            lead = "/".join([below, *parts] if below else parts)
            for name in sorted([*files, *links]):
                yield f"{lead}/{path_text(name)}" if lead else path_text(name)

    # -- writing ---------------------------------------------------------------------------
    def put(self, path: str, file: File, *, sync: bool = True, bits: Bits | None = None) -> None:
        """Write `file` at `path`: a temporary name beside it, then rename. Folders are made.

        The permission bits are git's, whatever the umask, unless `bits` says others. A hard link
        is never written through (the rename gives the path a new inode).
        """
        try:
            with self._folder_of(path, make=True) as (fd, name):
                _replace(fd, name, file, sync, bits)
        except OSError as error:
            raise disk_fault(error, path, "write") from error

    def remove(self, path: str, *, empty_folders: bool = True) -> None:
        """Remove the file at `path`, and folders that it leaves empty. Missing is fine."""
        try:
            with self._folder_of(path) as (fd, name), _ignored(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            if empty_folders:
                self._prune(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise disk_fault(error, path, "remove") from error

    def sweep(self, path: str) -> None:
        """Remove what a killed `put` of `path` left: its temporary file, and empty folders."""
        try:
            with self._folder_of(path) as (fd, name), _ignored(FileNotFoundError):
                os.unlink(_temporary(name), dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise disk_fault(error, path, "remove") from error
        self._prune(path)

    def _prune(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        while parent:
            try:
                with self._folder_of(parent) as (fd, name):
                    os.rmdir(name, dir_fd=fd)
            except OSError:
                return
            parent = parent.rpartition("/")[0]


def _replace(fd: int, name: bytes, file: File, sync: bool, bits: Bits | None = None) -> None:
    temporary = _temporary(name)
    try:
        # One writer at a time holds the target's lock, so a file of that name is a dead one's.
        with _ignored(FileNotFoundError):
            os.unlink(temporary, dir_fd=fd)
        if file.mode == SYMLINK:
            os.symlink(file.data, temporary, dir_fd=fd)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(temporary, flags, 0o600, dir_fd=fd)
            with os.fdopen(handle, "wb") as stream:
                stream.write(file.data)
                stream.flush()
                if bits is not None:
                    with _ignored(
                        OSError
                    ):  # only root gives files away, and not in every container
                        os.fchown(stream.fileno(), bits.uid, bits.gid)
                os.fchmod(stream.fileno(), bits.mode if bits else _PERMISSIONS[file.mode])
                if sync:
                    os.fsync(stream.fileno())
        os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with _ignored(OSError):
            os.unlink(temporary, dir_fd=fd)
        raise


def _temporary(name: bytes) -> bytes:
    """The same each time, so that what a killed process left can be found again."""
    return b".pk-" + hashlib.sha256(name).hexdigest()[:16].encode() + b".tmp"


def _read(handle: int, size: int) -> bytes:
    """All of a file that had `size` bytes when it was looked at."""
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data  # fewer than were asked for: its end
    pieces = [data]
    while piece := os.read(handle, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _git_mode(found: os.stat_result) -> int | None:
    if stat.S_ISLNK(found.st_mode):
        return SYMLINK
    if stat.S_ISREG(found.st_mode):
        return EXECUTABLE if found.st_mode & 0o100 else REGULAR
    return None


def _is_link(name: bytes, fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link_in_path(path: str, name: str) -> Refused:
    return Refused(
        Finding(
            "symlink-in-path",
            f"the folder {name} on the way to {path} is a symbolic link, which is never followed",
            Where(file=path),
            expected="a folder",
            found="a symbolic link",
        )
    )


@contextmanager
def _ignored(*kinds: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except kinds:
        pass
