"""Processors that ranks of one machine share: how much what runs beside each other slows down.

While more threads want a processor than there are, each gets an equal part. So all that is at work
at a moment goes on at one rate, and the integral of that rate is a clock that all share (virtual
time, as in fair queueing): what needs a certain work lasts until that clock has gone on by as much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.model import TimeParts
from chakra_et.replay.columns import Columns

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Processors:
    """So many processors of one machine; `waits` finds the names of operators that do not use one.

    It is a regular expression; empty, it finds none.
    """

    count: int
    waits: str = ""


@dataclass(frozen=True)
class Stretch:
    """How many times longer than alone work took: of each part of each rank, of each transfer."""

    parts: list[Reals]
    transfers: Reals

    def towards(self, other: Stretch) -> Stretch:
        """Half of the way to another one: the geometric mean."""
        parts = [np.sqrt(a * b) for a, b in zip(self.parts, other.parts, strict=True)]
        return Stretch(parts, np.sqrt(self.transfers * other.transfers))


class Timeline:
    """When all work of all ranks ran, on one clock, in ns; and how far it got by any moment.

    `starts[i]` are those of the nodes of rank i, `parts[i]` the parts of their durations. A
    transfer runs for `common` from when the last of its members has started; it uses a processor
    on each of them.
    """

    def __init__(
        self,
        ranks: Sequence[Columns],
        parts: Sequence[TimeParts],
        starts: Sequence[Rows],
        members: Sequence[dict[int, int]],
        common: Rows,
        processors: Processors,
    ) -> None:
        self.placed = [part.placed(start) for part, start in zip(parts, starts, strict=True)]
        self.uses = [_uses(*one, processors.waits) for one in zip(ranks, parts, strict=True)]
        self.met = np.array(
            [max(int(starts[i][row]) for i, row in rows.items()) for rows in members], np.int64
        )
        self.done = self.met + common
        work = [(b[use], e[use]) for (b, e), use in zip(self.placed, self.uses, strict=True)]
        begins = np.concatenate([*(begin for begin, _ in work), self.met])
        ends = np.concatenate([*(end for _, end in work), self.done])
        wants = np.ones(len(begins), np.int64)
        wants[len(wants) - len(members) :] = [len(rows) for rows in members]
        moments = np.concatenate((begins, ends))
        # A stable sort makes use of the order that ranks have already.
        order = np.argsort(moments, kind="stable")
        self.moments = moments[order]
        wanted = np.cumsum(np.concatenate((wants, -wants))[order])[:-1]
        rate = np.minimum(processors.count / np.maximum(wanted, 1), 1)
        self.work: Reals = np.append(0.0, np.cumsum(np.diff(self.moments) * rate))

    def stretch(self) -> Stretch:
        """How much longer than alone everything took; 1 for what uses no processor."""
        parts = [
            np.where(use, self._of(begin, end), 1.0)
            for (begin, end), use in zip(self.placed, self.uses, strict=True)
        ]
        return Stretch(parts, self._of(self.met, self.done))

    def _of(self, begin: Rows, end: Rows) -> Reals:
        if not len(self.moments):
            return np.ones(len(begin))
        took = (end - begin).astype(np.float64)
        did = np.diff(np.interp((begin, end), self.moments, self.work), axis=0)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((took > 0) & (did > 0), took / did, 1.0)


def _uses(columns: Columns, parts: TimeParts, waits: str) -> Mask:
    """Which parts use a processor: those of the host that do not wait, communicate or poll."""
    nodes = columns.trace.nodes
    found = [bool(waits) and re.search(waits, name) is not None for name in nodes.names]
    idle = np.append(np.array(found, np.bool_)[nodes.name_code], False)
    host = ~columns.device & ~columns.communication & columns.counts
    return np.asarray(host[parts.node] & ~idle[parts.owner] & (parts.ns > 0))
