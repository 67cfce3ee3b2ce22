"""Work in a copy of this process, on a core that would idle."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

from chakra_et.io.answers import answer, received
from chakra_et.io.cores import usable_cores
from chakra_et.io.memory import available_bytes, give_back, resident_bytes

A = TypeVar("A")
T = TypeVar("T")
_PIPE_BYTES: Final = 1 << 20
_ALLOWED: Final[list[bool]] = []
"""Not empty where this process may make copies of itself."""


@contextmanager
def forks_allowed() -> Iterator[None]:
    """Within it, this process may make copies of itself: all of its threads are of this package.

    A thread that holds a lock while the process is copied never gives it back in the copy. Those of
    the command line only show how far the work is, which no copy does; nobody knows those of
    programs that use the library.
    """
    _ALLOWED.append(True)
    try:
        yield
    finally:
        _ALLOWED.pop()


def may_fork() -> bool:
    """Whether this process may copy itself, and the copy has a core and memory of its own."""
    # Elsewhere, libraries of the system do not stand it.
    allowed = sys.platform == "linux" and bool(_ALLOWED)
    return allowed and usable_cores() > 1 and available_bytes() > resident_bytes()


class Fork(Generic[T]):
    """What `results` gives in a copy of this process: iterate, or ask for the only `result`.

    A copy begins in a few milliseconds, and shares what is in memory until one of both writes to
    it. It ends with its results, with this block, or with this process.
    """

    def __init__(self, results: Callable[[], Iterable[T]]) -> None:
        end, start = os.pipe()
        _widen(start)
        give_back(small_bytes=0)  # What is free would be taken twice: both processes fill it anew.
        with warnings.catch_warnings():
            # Python warns of locks of other threads, which `forks_allowed` answers for.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(end)
            _serve(start, results)
        os.close(start)
        self._answers = os.fdopen(end, "rb")

    def __enter__(self) -> Fork[T]:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # Where children are not waited for, the system does.
            os.waitpid(self.pid, 0)
        self._answers.close()

    def __iter__(self) -> Iterator[T]:
        while True:
            yield self.result()

    def result(self) -> T:
        """The next of the results. Raises its error, or WorkerLostError."""
        result: T = received(self._answers)
        return result


def in_turns(make: Callable[[A], T], items: Sequence[A]) -> Iterator[T]:
    """What `make` gives for each item, in order; for every other one a copy of this process does.

    Where no copy would pay, this process does all.
    """
    if len(items) < 2 or not may_fork():
        yield from map(make, items)
        return
    with Fork(lambda: map(make, items[1::2])) as other:
        for place, item in enumerate(items):
            yield other.result() if place % 2 else make(item)


def _widen(pipe: int) -> None:
    """Let a pipe hold more, so that both processes take turns less often."""
    import fcntl  # Windows has none.

    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _serve(place: int, results: Callable[[], Iterable[Any]]) -> None:
    """Give the results to the other process, and end."""
    try:
        gc.disable()  # It would write to all that is shared.
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The other process ends this one.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with os.fdopen(place, "wb") as stream:
            try:
                for result in results():
                    answer(stream, None, result)
            except Exception as error:
                answer(stream, error, None)
    finally:
        # Nothing that the other process has begun is ended here.
        os._exit(0)
