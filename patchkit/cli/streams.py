"""Standard output and standard error when they are closed, full, or nobody reads them.

A reader that has gone (`| head`) wants no more words, and the command's exit code stays the true
one. A disk that is full is the environment's fault, and said on standard error. What cannot be
said on standard error cannot be said at all.
"""

from __future__ import annotations

import os
import sys
from typing import IO

from patchkit.errors import EnvironmentFault
from patchkit.files.root import disk_fault


class StreamFault(EnvironmentFault):
    """Standard output took no more."""


def open_all() -> None:
    """Open what the caller closed (`>&-`) on the null device: no file that is opened later may
    get the number of a standard stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def say(stream: IO[str], text: str) -> None:
    """Write `text` now. Raises StreamFault where standard output cannot take it."""
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()
    except OSError as error:
        failed(stream, error)


def say_bytes(data: bytes) -> None:
    """Write bytes on standard output, as they are. Raises StreamFault."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        failed(sys.stdout, error)


def failed(stream: IO[str], error: OSError) -> None:
    """Nothing more goes to `stream`. Raises StreamFault where somebody is to be told."""
    hush(stream)
    if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
        raise StreamFault(*disk_fault(error, "standard output", "write").findings) from None


def hush(stream: IO[str]) -> None:
    """Send what the stream still holds, and all that is to come, to the null device."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
    except (OSError, ValueError):
        pass  # no file: a test's own stream


def settle() -> None:
    """Bring out what is still held. Raises StreamFault."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed(stream, error)
