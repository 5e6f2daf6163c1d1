"""The `patchkit` command: what happens when a verb raises, and the way to the verbs."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Any

from patchkit.cli.streams import StreamFault, failed, hush, open_all, say, settle
from patchkit.errors import ENVIRONMENT, Finding, PatchkitError

INTERRUPTED = 128 + signal.SIGINT
"""The exit code after ^C, as a shell has it."""
_STREAM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def main() -> None:
    """Run the command; exits 0 fine, 1 drift or refusal, 2 wrong command line, 3 environment."""
    open_all()
    try:
        code = _code()
        settle()
    except StreamFault as fault:
        # Not even JSON can be given: the words go to standard error in any case.
        from patchkit.cli.out import show_finding

        for finding in fault.findings:
            show_finding(finding)
        code = fault.exit_code
    raise SystemExit(code)


def _code() -> int:
    """The exit code of the command. Raises StreamFault where its output could not be written."""
    try:
        from patchkit.cli.quick import quick

        code = quick(sys.argv[1:])
        if code is None:
            from patchkit.cli.app import run

            code = run()
            if code == INTERRUPTED:
                say(sys.stderr, "interrupted\n")  # typer keeps that to itself
        return code
    except StreamFault:
        raise
    except PatchkitError as error:
        return _fail(error.findings, error.exit_code)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return _unread()  # typer makes 1 of it
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:
        return _unread()
    except KeyboardInterrupt:
        say(sys.stderr, "interrupted\n")
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("PATCHKIT_DEBUG"):
            raise
        return _unforeseen(error)


def _unread() -> int:
    """--help or --version that nobody read to its end; what a verb says goes another way."""
    if sys.__stdout__ is not None:
        sys.stdout = sys.__stdout__
    hush(sys.stdout)
    return 0


def _unforeseen(error: Exception) -> int:
    """What no verb has foreseen: a wrong command line as typer tells it, a disk, a fault."""
    show = getattr(error, "show", None)
    if callable(show):
        return _mistake(error)
    if isinstance(error, OSError):
        if error.filename is None and error.errno in _STREAM:
            failed(sys.stdout, error)  # typer's own words: --help, --version
        from patchkit.files.root import disk_fault

        fault = disk_fault(error, str(error.filename or "the system"), "use")
        return _fail(fault.findings, fault.exit_code)
    from patchkit.engine.plain import plain

    say(
        sys.stderr,
        f"error: a fault of patchkit itself: {type(error).__name__}: {plain(str(error))}\n"
        "  next:     run it again with PATCHKIT_DEBUG=1 and report the traceback\n",
    )
    return ENVIRONMENT


def _mistake(error: Any) -> int:
    """A command line that typer refuses, in its words; as a finding with --json."""
    code = int(error.exit_code)
    if not _as_json():
        error.show()
        return code
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "patchkit"
    return _fail([Finding("usage", error.format_message(), next=f"{path} --help")], code)


def _fail(findings: Any, code: int) -> int:
    from patchkit.cli.hints import completed
    from patchkit.cli.out import Out

    verb = _verb()
    out = Out(verb, as_json=_as_json())
    out.find(completed(finding, verb) for finding in findings)
    return out.close(code)


def _as_json() -> bool:
    return "--json" in sys.argv[1:]


def _verb() -> str:
    from patchkit.cli.verbs import word

    return word(sys.argv[1:]) or ""
