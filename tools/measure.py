"""Run one command and print what it took, as JSON.

    python -S tools/measure.py LOG COMMAND ...
    python -S tools/measure.py --together LOG COMMAND ...

A program of its own because a child's peak memory is never below that of the process which
started it: this one is small. The command's output goes to LOG. `peak_bytes` is that of the
command's largest process. With `--together` it is that of all of its processes together, looked at
every few milliseconds where the system tells of each (on Linux); pages that several processes share
count once. Looking holds the processes up: time a command without it.
"""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

_PAUSE_S = 0.005
_PAUSE_OF_SEVERAL_S = 0.1
"""What processes share is counted page by page, which holds them up."""


def _environment() -> dict[str, str]:
    """Bytecode is kept, as it is where a program is installed."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


class _Peak(threading.Thread):
    """Looks at the memory of a process and of all that it started."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._pid = pid

    def run(self) -> None:
        while True:
            pids = [self._pid]
            # One of them may just have ended.
            with suppress(OSError):
                pids = _family(self._pid)
                held = _resident(self._pid) if len(pids) == 1 else sum(map(_share, pids))
                self.bytes = max(self.bytes, held)
            time.sleep(_PAUSE_S if len(pids) == 1 else _PAUSE_OF_SEVERAL_S)


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with open(f"/proc/{one}/task/{one}/children") as file:  # noqa: PTH123
            found += map(int, file.read().split())
    return found


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _share(pid: int) -> int:
    """Resident bytes; of a page that several processes share, each has its part."""
    with open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123
        return next(int(row.split()[1]) * 1024 for row in file if row.startswith("Pss:"))


def main() -> None:
    together = sys.argv[1] == "--together"
    log, *command = sys.argv[1 + together :]
    with open(log, "wb") as out:  # noqa: PTH123 - pathlib would cost memory
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment()
        )
        peak = _Peak(child.pid)
        if together:
            peak.start()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    print(
        json.dumps(
            {
                "wall_s": wall,
                "cpu_s": used.ru_utime + used.ru_stime,
                "peak_bytes": max(used.ru_maxrss * unit, peak.bytes),
                "status": child.returncode,
            }
        )
    )


if __name__ == "__main__":
    main()
