"""Run one command and print what it took, as JSON.

    python -S tools/measure.py LOG COMMAND ...

A program of its own because a child's peak memory is never below that of the process which
started it: this one is small. The command's output goes to LOG.
"""

import json
import os
import subprocess
import sys
import time


def _environment() -> dict[str, str]:
    """Bytecode is kept, as it is where a program is installed."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    log, *command = sys.argv[1:]
    with open(log, "wb") as out:  # noqa: PTH123 - pathlib would cost memory
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment()
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    print(
        json.dumps(
            {
                "wall_s": wall,
                "cpu_s": used.ru_utime + used.ru_stime,
                "peak_bytes": used.ru_maxrss * unit,
                "status": child.returncode,
            }
        )
    )


if __name__ == "__main__":
    main()
