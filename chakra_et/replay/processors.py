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


def users(ranks: Sequence[Columns], of: Sequence[TimeParts], waits: str) -> list[Mask]:
    """Which parts of each rank use a processor: those of the host that do not wait, communicate or
    poll.
    """
    found = []
    for columns, parts in zip(ranks, of, strict=True):
        nodes = columns.trace.nodes
        named = [bool(waits) and re.search(waits, name) is not None for name in nodes.names]
        idle = np.append(np.array(named, np.bool_)[nodes.name_code], False)
        host = ~columns.device & ~columns.communication & columns.counts
        found.append(np.asarray(host[parts.node] & ~idle[parts.owner] & (parts.ns > 0)))
    return found


def stretch(
    uses: Sequence[Mask],
    parts: Sequence[TimeParts],
    starts: Sequence[Rows],
    members: Sequence[dict[int, int]],
    common: Rows,
    count: int,
) -> Stretch:
    """How much longer than alone all work took beside each other; 1 for what uses no processor.

    `starts[i]` are those of the nodes of rank i on one clock, in ns, `parts[i]` the parts of their
    durations, of which those in `uses[i]` take one of `count` processors. A transfer runs for
    `common` from when the last of its members has started; it uses a processor on each of them.
    """
    placed = [part.placed(start) for part, start in zip(parts, starts, strict=True)]
    met = np.array(
        [max(int(starts[i][row]) for i, row in rows.items()) for rows in members], np.int64
    )
    begins, ends = (
        np.concatenate([*(one[side][use] for one, use in zip(placed, uses, strict=True)), last])
        for side, last in ((0, met), (1, met + common))
    )
    wants = np.ones(len(begins), np.int64)
    wants[len(wants) - len(members) :] = [len(rows) for rows in members]
    longer = _longer(begins, ends, wants, count)
    borders = np.cumsum([np.count_nonzero(use) for use in uses])
    *of_ranks, transfers = np.split(longer, borders)
    found = [np.ones(len(use)) for use in uses]
    for column, use, values in zip(found, uses, of_ranks, strict=True):
        column[use] = values
    return Stretch(found, transfers)


def _longer(begins: Rows, ends: Rows, wants: Rows, count: int) -> Reals:
    """How many times longer than alone each of some intervals lasts, which wants processors."""
    if not len(begins):
        return np.ones(0)
    moments = np.concatenate((begins, ends))
    # A stable sort makes use of the order that ranks have already.
    order = np.argsort(moments, kind="stable")
    wanted = np.cumsum(np.concatenate((wants, -wants))[order])[:-1]
    rate = np.minimum(count / np.maximum(wanted, 1), 1)
    passed = np.empty(len(moments))
    passed[order] = np.append(0.0, np.cumsum(np.diff(moments[order]) * rate))
    did, took = passed[len(begins) :] - passed[: len(begins)], ends - begins
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((took > 0) & (did > 0), took / did, 1.0)
