"""The end of a command: the system takes all memory back at once, object by object takes longer."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Run a command within this, and the process ends without freeing what the command made.

    It ends with the command's exit status, after all that runs at the end of a process: threads,
    handlers, streams. What ends in a traceback ends as ever, and so does a process that a profiler
    or debugger watches.
    """
    status: list[int] = []
    # Handlers run in the opposite order, so this is the last but for those from before the command.
    atexit.register(_end, status)
    try:
        yield
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            status.append(end.code or 0)
        raise
    else:
        status.append(0)


def streams_opened() -> None:
    """Put something in the place of standard streams that are closed, as in `chakra … >&-`.

    Else a file that is opened takes their number. Writing to standard output fails then, as it does
    for other programs; messages for standard error go nowhere.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - open until the end
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


@contextmanager
def all_printed() -> Iterator[None]:
    """Write what was printed before the command ends: what goes wrong then is an error like others.

    Raises OSError. Where nobody reads any more, the process ends with 1, without a word.
    """
    try:
        yield
    except SystemExit:
        _print_all()
        raise
    _print_all()


def _print_all() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere(sys.stdout)
        sys.exit(1)


def to_nowhere(stream: TextIO) -> None:
    """Let go of what a stream still holds, and of all that is printed to it from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end(status: list[int]) -> None:
    if not status or _is_watched():
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError, AttributeError):
        return  # Python tells what is wrong with a stream.
    os._exit(status[0] & 0xFF)


def _is_watched() -> bool:
    """Whether a profiler, debugger or the like has something left to do."""
    monitoring = getattr(sys, "monitoring", None)
    tools = () if monitoring is None else map(monitoring.get_tool, range(6))
    return any((sys.gettrace(), sys.getprofile(), *tools))
