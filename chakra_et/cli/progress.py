"""Signs of life during long work: on a terminal only, and gone when the work is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from rich.console import Console

_PATIENCE_S: Final = 0.7
"""Work that is over sooner shows nothing."""
Step: TypeAlias = Callable[[int, int], None]
"""Takes how much is done, of how much."""


@contextmanager
def working(what: str) -> Iterator[Step]:
    """Show what is going on while the block runs; call the step to show how far it is."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _of: None
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
