"""A replay in which ranks share processors: durations and what runs beside what, until they agree.

How long work takes depends on what runs beside it, and that on how long all work takes. So a replay
is followed by another one with the durations that the first one's timeline asks for, until they
stay: a timeline that asks for the durations it was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from chakra_et.columns import Rows
from chakra_et.model import TimeParts
from chakra_et.replay.engine import Times
from chakra_et.replay.meetings import Meetings
from chakra_et.replay.planning import Layout
from chakra_et.replay.processors import Processors, Stretch, stretch, users
from chakra_et.replay.transfers import Transfers

_ROUNDS: Final = 40
_STAYS: Final = 1e-4
"""Durations have settled when they change by no more than this share of their sum."""

Timed = Callable[[Sequence[TimeParts], Transfers], tuple[Layout, Times]]
"""Runs the graph with some durations."""


def settled(
    met: Meetings,
    alone: list[TimeParts],
    transfers: Transfers,
    processors: Processors,
    timed: Timed,
) -> tuple[list[TimeParts], Layout, Times]:
    """Durations beside each other, and what a replay with them gives.

    `alone` and `transfers` are what everything takes with a processor to itself.
    """
    parts, now = alone, transfers
    uses = users(met.ranks, alone, processors.waits)
    by: Stretch | None = None
    layout, times = timed(parts, now)
    for _ in range(_ROUNDS):
        if not times.done.all():
            break
        starts = [
            times.start[first : first + len(columns)]
            for first, columns in zip(layout.first, met.ranks, strict=True)
        ]
        found = stretch(uses, parts, starts, met.members, now.common, processors.count)
        # Half of the way: a step that goes too far would be taken back by the next one.
        by = found if by is None else by.towards(found)
        before = _durations(parts, now)
        parts = [
            replace(part, ns=np.rint(part.ns * longer).astype(np.int64))
            for part, longer in zip(alone, by.parts, strict=True)
        ]
        now = transfers.longer(by.transfers, [len(rows) for rows in met.members])
        layout, times = timed(parts, now)
        durations = _durations(parts, now)
        if np.abs(durations - before).sum() <= _STAYS * durations.sum():
            break
    return parts, layout, times


def _durations(parts: Sequence[TimeParts], transfers: Transfers) -> Rows:
    """All durations of all ranks, and those of all transfers."""
    return np.concatenate([*(part.ns for part in parts), transfers.common])
