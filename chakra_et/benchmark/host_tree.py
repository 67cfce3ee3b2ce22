"""Who called whom on the host, as columns that selections need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace
from chakra_et.times import callers_on_host

_DEEPEST = 4096
"""Callers in a circle, as damaged files may have them, have no end."""


@dataclass(frozen=True)
class HostTree:
    """The host's nodes of a trace by caller: `caller[r]` is a row, -1 for a root."""

    trace: Trace
    caller: Rows

    @classmethod
    def of(cls, trace: Trace) -> HostTree:
        """The tree of a trace's edges of kind call."""
        return cls(trace, callers_on_host(trace))

    @cached_property
    def levels(self) -> list[Rows]:
        """The rows by their distance from a root, the roots first."""
        depth = np.zeros(len(self.caller), np.int64)
        inside = self.caller >= 0
        for _ in range(_DEEPEST):
            deeper = np.where(inside, depth[self.caller] + 1, 0)
            if np.array_equal(deeper, depth):
                break
            depth = deeper
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(depth))[:-1]) if len(order) else []

    def cover(self, chosen: Mask) -> Rows:
        """For each row, the outermost chosen row that it lies in, itself included; -1 if none."""
        cover = np.full(len(self.caller), -1, np.int64)
        for rows in self.levels:
            above = np.where(self.caller[rows] >= 0, cover[self.caller[rows]], -1)
            cover[rows] = np.where(above >= 0, above, np.where(chosen[rows], rows, -1))
        return cover

    def holds(self, mask: Mask) -> Mask:
        """Which rows have a row of the mask below them."""
        found = np.zeros(len(self.caller), np.bool_)
        for rows in reversed(self.levels):
            above = self.caller[rows]
            told = (above >= 0) & (mask[rows] | found[rows])
            found[above[told]] = True
        return found

    @cached_property
    def inclusive_ns(self) -> Rows:
        """From the start to the end of each node; 0 where that is not known."""
        told: Rows = self.trace.nodes.attributes.dense("inclusive_ns", 0, np.int64)
        return told

    @cached_property
    def device_ns(self) -> Rows:
        """The time of the device work that each row launched itself."""
        trace = self.trace
        launched = trace.edges.kind == EdgeKind.LAUNCH
        source, target = trace.source_rows()[launched], trace.edges.target[launched]
        known = source >= 0
        took = np.zeros(len(trace.nodes), np.int64)
        np.add.at(took, source[known], trace.nodes.duration_ns[target[known]])
        return took

    @property
    def timed(self) -> Mask:
        """Which rows have a start."""
        return np.asarray(self.trace.nodes.start_ns != UNKNOWN_NS)
