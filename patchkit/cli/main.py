"""The `patchkit` command: what happens when a verb raises, and the way to the verbs."""

from __future__ import annotations

import os
import sys

from patchkit.errors import ENVIRONMENT, PatchkitError


def main() -> None:
    """Run the command; exits 0 fine, 1 drift or refusal, 2 wrong command line, 3 environment."""
    try:
        from patchkit.cli.quick import quick

        code = quick(sys.argv[1:])
        if code is not None:
            raise SystemExit(code)
        from patchkit.cli.app import run

        run()
    except PatchkitError as error:
        _fail(error)
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is left to say, and Python's own flush at
        # exit must not say it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except Exception as error:
        if os.environ.get("PATCHKIT_DEBUG"):
            raise
        from patchkit.cli.plain import plain

        sys.stderr.write(
            f"error: a fault of patchkit itself: {type(error).__name__}: {plain(str(error))}\n"
            "  next:     run it again with PATCHKIT_DEBUG=1 and report the traceback\n"
        )
        raise SystemExit(ENVIRONMENT) from None


def _fail(error: PatchkitError) -> None:
    from patchkit.cli.out import Out

    as_json = "--json" in sys.argv[1:]
    out = Out(_verb(), as_json=as_json)
    out.find(error.findings)
    raise SystemExit(out.close(error.exit_code))


def _verb() -> str:
    return next((a for a in sys.argv[1:] if not a.startswith("-")), "")
