"""A small process that starts the measured ones, run as a script: `python -I -S launch.py`.

Linux counts the memory that a process had between fork and exec, its parent's that is, as its own.
The benchmark holds a whole source tree; this one holds nothing.

A request is a line of JSON: command, cwd, env, and the files of its standard streams. The answer
is a line: exit status, CPU seconds, wall seconds, MB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        with (
            open(asked["stdin"], "rb") as source,
            open(asked["stdout"], "wb") as out,
            open(asked["stderr"], "wb") as err,
        ):
            began = time.perf_counter()
            process = subprocess.Popen(
                asked["command"],
                cwd=asked["cwd"],
                env=asked["env"],
                stdin=source,
                stdout=out,
                stderr=err,
            )
            # wait4 gives the use of this child alone; getrusage would add up all before it.
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        cpu = used.ru_utime + used.ru_stime
        print(json.dumps([process.returncode, cpu, wall, used.ru_maxrss / 1024]), flush=True)


if __name__ == "__main__":
    main()
