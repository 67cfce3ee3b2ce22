"""How long operators and transfers of other shapes take, from those that a run had.

Where the given times are those of a known device's roofline, so are the new ones. Else the best
rates of the run tell by how much a shape is more work than the nearest one of the same operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.tables.places import Places
from chakra_et.validators.view import TraceView
from chakra_et.whatif.recorded.transfers import (
    EXTRAPOLATED,
    INTERPOLATED,
    RECORDED,
    common_times,
)
from chakra_et.whatif.transformer.same import Seen
from chakra_et.workloads.durations import Device, Roofline, devices
from chakra_et.workloads.operators import Operator

MODEL: Final = "model"
UNKNOWN: Final = "unknown"
"""Further words for where a time comes from; `UNKNOWN` is 0 where the run tells no times at all."""


@dataclass
class OperatorTimes:
    """Times of operators: `took` has the median of each that ran, `steady` those that always took
    as long. `device` is the one of which all times are the roofline's, None if none is.
    """

    took: dict[Operator, int]
    steady: set[Operator]
    device: Device | None
    _rates: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Seen) -> OperatorTimes:
        """The times that a run shows."""
        numbers = np.concatenate([number for number, _ in seen.ranks.values()])
        ns = np.concatenate([trace.nodes.duration_ns for _, trace in seen.ranks.values()])
        order = np.lexsort((ns, numbers))
        numbers, ns = numbers[order], ns[order]
        took, steady = {}, set()
        for operator, number in seen.operators.items():
            first, last = np.searchsorted(numbers, (number, number + 1)).tolist()
            if first < last:
                took[operator] = int(ns[(first + last - 1) // 2])
                if ns[first] == ns[last - 1]:
                    steady.add(operator)
        return cls(took, steady, _device(took) if len(steady) == len(took) else None)

    def time_ns(self, operator: Operator) -> tuple[int, str]:
        """The time of an operator, and where it comes from."""
        if operator in self.took:
            return self.took[operator], RECORDED if any(self.took.values()) else UNKNOWN
        if not any(self.took.values()):
            return 0, UNKNOWN
        if self.device is not None:
            return Roofline(self.device)(operator), MODEL
        return self._scaled(operator)

    def _scaled(self, operator: Operator) -> tuple[int, str]:
        """The time of the nearest of the same name and type, times how much more work this is."""
        work = self._work(operator)
        same = [(self._work(o), ns) for o, ns in self.took.items()
                if o.name == operator.name and o.dtype == operator.dtype and ns]  # fmt: skip
        if not same:
            return max(round(work), 1), MODEL
        near, ns = min(same, key=lambda pair: abs(np.log(pair[0] / work)))
        inside = min(w for w, _ in same) <= work <= max(w for w, _ in same)
        return max(round(ns * work / near), 1), INTERPOLATED if inside else EXTRAPOLATED

    def _work(self, operator: Operator) -> float:
        """The ns that an operator takes at the best rates that the run reaches."""
        if not self._rates:
            for one, ns in self.took.items():
                rates = {
                    one.dtype: one.flops / max(ns, 1),
                    "bytes": one.moved_bytes / max(ns, 1) if not one.flops else 0.0,
                }
                for name, rate in rates.items():
                    self._rates[name] = max(self._rates.get(name, 0.0), rate)
        flops, moved = (
            self._rates.get(operator.dtype) or max(self._rates.values()),
            self._rates["bytes"],
        )
        return max(
            operator.flops / max(flops, 1e-12), operator.moved_bytes / max(moved, 1e-12), 1e-9
        )


def _device(took: Mapping[Operator, int]) -> Device | None:
    """The device whose roofline all times are."""
    for device in devices().values():
        roofline = Roofline(device)
        try:
            if took and all(roofline(operator) == ns for operator, ns in took.items()):
                return device
        except ChakraError:
            continue
    return None


@dataclass
class TransferTimes:
    """Times of transfers by what they are: type, bytes, and ranks of the group."""

    took: dict[tuple[int, int, int], int]

    @classmethod
    def of(cls, seen: Seen) -> TransferTimes:
        """The medians that a run shows: of what a transfer takes once all ranks are there."""
        found: dict[tuple[int, int, int], list[int]] = {}
        common = _common(TraceSet({rank: trace for rank, (_, trace) in seen.ranks.items()}))
        for rank, (_, trace) in seen.ranks.items():
            for row, key in zip(*transfers_of(trace, rank), strict=True):
                took = int(trace.nodes.duration_ns[row])
                found.setdefault(key, []).append(common.get((rank, row), took))
        return cls({key: sorted(all)[len(all) // 2] for key, all in found.items()})

    def time_ns(self, key: tuple[int, int, int]) -> tuple[int, str]:
        """The time of a transfer, and where it comes from."""
        if not any(self.took.values()):
            return 0, UNKNOWN
        if key in self.took:
            return self.took[key], RECORDED
        same = [k for k in self.took if k[0] == key[0]] or list(self.took)
        near = min(same, key=lambda k: abs(np.log(max(_carried(k), 1) / max(_carried(key), 1))))
        inside = min(map(_carried, same)) <= _carried(key) <= max(map(_carried, same))
        ns = self.took[near] * _carried(key) / max(_carried(near), 1)
        return max(round(ns), 1), INTERPOLATED if inside and len(same) > 1 else EXTRAPOLATED


def _common(traces: TraceSet) -> dict[tuple[int, int], int]:
    """What transfers take without waiting, by rank and row, where a run tells when they began."""
    told = any(
        (trace.nodes.duration_ns[Places(trace).communication] > 0).any()
        for trace in traces.values()
    )
    return common_times(traces) if told else {}


def _carried(key: tuple[int, int, int]) -> float:
    """The bytes that a rank sends on a ring of its group."""
    kind, size, ranks = key
    if kind < 0 or ranks < 2:
        return float(size)
    whole = (
        2
        if kind == CollectiveType.ALL_REDUCE
        else ranks
        if kind == CollectiveType.ALL_GATHER
        else 1
    )
    return size * whole * (ranks - 1) / ranks


def transfers_of(trace: Trace, rank: int) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The rows that communicate, and of each the type (-1 for a message), bytes and ranks."""
    view = TraceView(trace, rank)
    rows = np.flatnonzero(Places(trace).communication)
    sizes = {group.name: len(group.ranks) for group in trace.groups}
    types: Rows = np.where(view.nodes.type == NodeType.COMM_COLL, view.integers("comm_type"), -1)
    names, bytes_of = view.texts("pg_name"), view.integers("comm_size")
    keys = [
        (int(types[row]), int(bytes_of[row]), sizes.get(str(names[row]), 2))
        for row in rows.tolist()
    ]
    return rows.tolist(), keys
