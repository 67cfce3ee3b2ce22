"""What ranks of a launch do in tests: they end well, or badly, or not at all."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from chakra_et.errors import ChakraError


def seat(given: int) -> tuple[int, str, str, int]:
    """What a rank is told: its place, and what it was given."""
    print("to standard error")
    return int(os.environ["RANK"]), os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"], given


class FollowsError(ChakraError):
    """An error because of another rank."""

    follows = True


def fate(what: str, folder: str) -> str:
    """End as told: well, with an error, by a signal, or never."""
    (Path(folder) / f"{os.environ['RANK']}.pid").write_text(str(os.getpid()))
    if what == "error":
        raise ChakraError("its own error", place="rank 1", remedy="Mend it.")
    if what == "follows":
        raise FollowsError("another rank has ended")
    if what == "bug":
        raise IndexError("a bug")
    if what == "exit":
        sys.exit(7)
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "never":
        time.sleep(60)
    if what == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    return what
