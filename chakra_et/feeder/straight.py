"""A run in order, which needs no bookkeeping.

Most traces are numbered so that every node has a larger id than what it waits for. As long as the
nodes of such a trace are taken from the first to the last, each done before the next is taken, how
many were handed out says it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.feeder.table import Table

CHUNK: Final = 1024
"""Views that are made at once."""


class Straight:
    """Hands out `rows` of a table one after the other."""

    def __init__(self, table: Table, rows: npt.NDArray[np.int64]) -> None:
        self._table = table
        self._rows = rows
        self._made = 0  # rows that have got a view
        self._chunk: list[Any] = []
        self._views: Iterator[Any] = iter(self._chunk)  # those that are not handed out yet
        self._running = False
        self._last = int(table.id[rows[-1]]) if len(rows) else None
        self.taken: int | None = None  # the id that next() has given and that is not done
        self.finished = len(rows) == 0

    @property
    def is_free(self) -> bool:
        """Whether nothing is taken, so that a run can begin or go on."""
        return not self._running and self.taken is None

    def run(self) -> Iterator[Iterator[Any]]:
        """The nodes that are left, some at a time; each is done when the next is asked for."""
        self._running = True
        yield self._views
        while self._made < len(self._rows):
            yield self._more()
        if self._running:
            self._running, self.finished = False, True

    def next(self) -> Any:
        """Take the next node; None if the last one is not done, or if there is none."""
        if self._running or self.taken is not None:
            return None
        node = next(self._views, None)
        if node is None and self._made < len(self._rows):
            node = next(self._more())
        if node is not None:
            self.taken = node.id
        return node

    def done(self) -> None:
        """The node taken is done."""
        self.finished = self.taken == self._last
        self.taken = None

    def _more(self) -> Iterator[Any]:
        rows = self._rows[self._made : self._made + CHUNK]
        self._chunk = self._table.nodes(rows)
        self._made += len(rows)
        self._views = iter(self._chunk)
        return self._views

    def stop(self) -> tuple[int, bool]:
        """How many nodes were handed out, and whether the last of them is taken. No more follow."""
        handed = self._made - length_hint(self._views)
        taken = handed > 0 and not self.is_free
        self._made, self._running = len(self._rows), False
        self._chunk.clear()  # ends the loop over it, wherever that is
        return handed, taken
