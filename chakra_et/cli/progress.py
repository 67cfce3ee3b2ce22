"""Signs of life during long work: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from chakra_et.cli.terminal import may_be_terminal

if TYPE_CHECKING:
    from rich.console import Console

_PATIENCE_S: Final = 0.7
"""Work that is over sooner shows nothing."""
_LINES_S: Final = 30
"""A log gets a line so often."""
Step: TypeAlias = Callable[[int, int], None]
"""Takes how much is done, of how much."""


class _Lines:
    """A line for whoever reads a log, at most so often."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told_s = time.monotonic()

    def step(self, done: int, of: int) -> None:
        """Tell how far it is, if that was not told for long."""
        if time.monotonic() - self._told_s >= _LINES_S:
            self._told_s = time.monotonic()
            print(f"{self._what}: {done:,} of {of:,}", file=sys.stderr)


def _terminal() -> Console | None:
    """The console of standard error, if that is a terminal."""
    if not may_be_terminal(sys.stderr):
        return None
    from rich.console import Console

    console = Console(stderr=True, markup=False)
    return console if console.is_terminal else None


@contextmanager
def working(what: str, *, lines: bool = False) -> Iterator[Step]:
    """Show what is going on while the block runs; call the step to show how far it is.

    With `lines`, what is no terminal gets a line now and then.
    """
    console = _terminal()
    if console is None:
        yield _Lines(what).step if lines else lambda _done, _of: None
        return
    # It takes 40 ms to import, and only terminals need it.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(), "{task.fields[count]}", TimeElapsedColumn())
    progress = Progress(SpinnerColumn(), *columns, console=console, transient=True)
    task = progress.add_task(what, total=None, count="")

    def told(done: int, of: int) -> None:
        progress.update(task, completed=done, total=of, count=f"{done:,}/{of:,}")

    timer = threading.Timer(_PATIENCE_S, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield told
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
