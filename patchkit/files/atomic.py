"""Whole files outside a target: read within a limit, replaced all at once."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.abandoned import sweep, unfinished
from patchkit.files.root import disk_fault

MEGABYTE = 1 << 20


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def given_file(path: str, limit: int = 64 * MEGABYTE) -> bytes:
    """The bytes of a file that somebody named on the command line.

    Raises UsageFault where there is none of that name, or something that is no file (a FIFO would
    be waited for without end), else what `read_file` does.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        found = "a link to nothing" if os.path.islink(path) else "nothing"
    except OSError as error:
        raise disk_fault(error, path, "read") from error
    else:
        if stat.S_ISREG(mode):
            return read_file(path, limit)
        found = _KINDS.get(stat.S_IFMT(mode), "something else")
    raise UsageFault(
        Finding(
            "usage",
            f"there is no file {path}" if "nothing" in found else f"{path} is no file: {found}",
            Where(file=path),
            expected="a file",
            found=found,
            next="name a file" + ("" if "nothing" in found else "; put what it gives into one"),
        )
    )


def read_file(path: str | os.PathLike[str], limit: int = 64 * MEGABYTE) -> bytes:
    """The bytes of the regular file `path`.

    Raises Refused(too-large) above `limit` bytes, EnvironmentFault(disk) where it cannot be read.
    """
    at = os.fspath(path)
    try:
        # O_NONBLOCK: a FIFO that stands where a file should must not hang us.
        handle = os.open(at, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)  # no stream takes a folder, nor closes it
            kind = _KINDS.get(stat.S_IFMT(mode), "something else")
            raise OSError(errno.EINVAL, f"it is {kind}, not a file", at)
        with os.fdopen(handle, "rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise disk_fault(error, at, "read") from error
    if len(data) > limit:
        raise Refused(
            Finding(
                "too-large",
                f"{os.path.basename(at)} is larger than {limit >> 20} MB",
                Where(file=at),
                expected=f"at most {limit} bytes",
                found=f"{os.path.getsize(at)} bytes",
            )
        )
    return data


_TEMPORARY = ".pk-tmp"


def write_file(
    path: str | os.PathLike[str], data: bytes, mode: int = 0o644, *, tidy: bool = True
) -> None:
    """Replace `path` by `data` in one rename; the folder must exist. The umask plays no part.

    tidy: remove what a process that was killed here left; not worth a look where the folder goes
    as a whole. Raises EnvironmentFault(disk); the old file is untouched then.
    """
    at = os.fspath(path)
    temporary = unfinished(at, _TEMPORARY)
    try:
        handle = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.rename(temporary, at)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise disk_fault(error, at, "write") from error
    if tidy:
        sweep(at, _TEMPORARY)


def move_folder(new: str, at: str) -> None:
    """Give the folder `new` the name `at`, where nothing or an empty folder stands.

    Raises EnvironmentFault(disk).
    """
    try:
        os.rename(new, at)
    except OSError as error:
        raise disk_fault(error, at, "make") from error


def make_folder(path: str | os.PathLike[str], mode: int | None = None) -> None:
    """Make the folder `path` and those above it. Raises EnvironmentFault(disk).

    mode: its permission bits, where the umask is to have no say.
    """
    try:
        os.makedirs(path, exist_ok=True)
        if mode is not None:
            os.chmod(path, mode)
    except OSError as error:
        raise disk_fault(error, os.fspath(path), "make the folder") from error
