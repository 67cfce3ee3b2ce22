"""Times of what a run did not do, from a table of kernel times."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.kerneltimes import KernelTimes, Provenance, calls_of
from chakra_et.kerneltimes.features import LINKS, Features, Key
from chakra_et.model import Trace

BY_TABLE: Final = "by the table"


class TableTimes:
    """Asked for the times of nodes by what a table says of calls on one of its devices."""

    def __init__(self, table: KernelTimes, device: str) -> None:
        self._table = table
        self._device = device
        self._trace: Trace | None = None
        self._calls: tuple[list[Key], Features, Rows]

    def time_ns(self, trace: Trace, row: int) -> tuple[int, str] | None:
        """The time of a node, and where it comes from; None where the table does not tell."""
        if self._trace is not trace:
            # What nodes take is not there yet, and nothing may remember it.
            calls = calls_of(Trace(trace.nodes.copied(), trace.edges, trace.metadata))
            self._trace, self._calls = trace, (calls.keys, calls.features, calls.call_of)
        keys, features, call_of = self._calls
        call = int(call_of[row])
        if call < 0:
            return None
        key = keys[call]
        if key.device != LINKS:
            key = key._replace(device=self._device)
        times, source = self._table.times_ns([key], features[call : call + 1])
        if not np.isfinite(times[0]):
            return None
        return max(round(float(times[0])), 1), f"{Provenance(source[0]).label} {BY_TABLE}"
