"""Where nodes belong: what launched them, which operator, which annotation, which lane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.model import EdgeKind, Trace
from chakra_et.times import callers_on_host

_ANNOTATION: Final = "user_annotation"
_DEEPEST: Final = 1000
"""How deep callers are followed: in a circle, as damaged files may have them, they have no end."""
_COMMUNICATION: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)
_MOVES: Final = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")


@dataclass(frozen=True)
class Places:
    """What several tables ask of one trace; rows of nodes, -1 for none."""

    trace: Trace

    @cached_property
    def on_host(self) -> Mask:
        """Which nodes occupy a host processor."""
        return self.trace.nodes.attributes.dense("is_cpu_op", False, np.bool_)

    @cached_property
    def communication(self) -> Mask:
        """Which nodes are transfers between ranks."""
        return np.isin(self.trace.nodes.type, _COMMUNICATION)

    @cached_property
    def carried(self) -> Mask:
        """Which nodes are another node's kernel once more: their time counts there."""
        return self.trace.nodes.attributes.present("same_kernel")

    @cached_property
    def kind(self) -> npt.NDArray[np.object_]:
        """What each node is: host, compute, memory or communication."""
        kind = np.where(self.on_host, "host", "compute").astype(object)
        moves = np.isin(self.trace.nodes.type, (NodeType.MEM_LOAD, NodeType.MEM_STORE))
        kind[~self.on_host & (moves | self._of_category(_MOVES))] = "memory"
        kind[self.communication] = "communication"
        return kind

    @cached_property
    def ran(self) -> Mask:
        """Which nodes are work, and not only about the trace."""
        return np.asarray(self.trace.nodes.type != NodeType.METADATA)

    @cached_property
    def caller(self) -> Rows:
        """The caller of each host node."""
        return callers_on_host(self.trace)

    @cached_property
    def launcher(self) -> Rows:
        """The host node that launched each node that is none; else its caller, if it has one."""
        source, target = self.trace.source_rows(), self.trace.edges.target
        launcher = np.full(len(self.trace.nodes), -1, np.int64)
        for kind in (EdgeKind.CALL, EdgeKind.LAUNCH):
            chosen = (self.trace.edges.kind == kind) & (source >= 0) & ~self.on_host[target]
            launcher[target[chosen]] = source[chosen]
        return launcher

    @cached_property
    def device_work(self) -> tuple[Rows, Rows]:
        """Device work but communication, and the operator that launched each, -1 for none.

        What is another node's kernel once more is left out.
        """
        rows = np.flatnonzero(~self.on_host & ~self.communication & ~self.carried)
        return rows, self.nearest(self.operator)[rows]

    @cached_property
    def annotation(self) -> Mask:
        """Which nodes are annotations: they do nothing themselves."""
        return self._of_category((_ANNOTATION,)) & self.on_host

    @cached_property
    def operator(self) -> Mask:
        """Which host nodes are operators, which have inputs or a signature."""
        nodes = self.trace.nodes
        told = nodes.attributes.present("op_schema") | (nodes.input_code >= 0)
        return self.on_host & ~self.annotation & (told | self._of_category(("cpu_op", "Operator")))

    def nearest(self, wanted: Mask) -> Rows:
        """For each node the nearest of the wanted ones: itself, what launched it, or a caller."""
        above = np.where(self.on_host, self.caller, self.launcher)
        row = np.arange(len(above))
        for _ in range(_DEEPEST):
            more = (row >= 0) & ~wanted[row]
            if not more.any():
                break
            row = np.where(more, above[row], row)
        return np.where((row >= 0) & wanted[row], row, -1)

    def outermost(self, wanted: Mask) -> Rows:
        """For each node the wanted one that is farthest up among those that lead to it."""
        nearest = self.nearest(wanted)
        row = nearest
        for _ in range(_DEEPEST):
            above = np.where(row >= 0, self.caller[row], -1)
            higher = np.where(above >= 0, nearest[above], -1)
            if not (higher >= 0).any():
                break
            row = np.where(higher >= 0, higher, row)
        return row

    def _of_category(self, wanted: tuple[str, ...]) -> Mask:
        found = np.zeros(len(self.trace.nodes), np.bool_)
        for column in self.trace.nodes.attributes.named("category"):
            found[column.rows] = [value in wanted for value in column.values]
        return found

    @cached_property
    def lane(self) -> tuple[Rows, list[str]]:
        """A number for the thread or stream of each node, and their names in order of numbers."""
        return _lanes(self)


def _lanes(places: Places) -> tuple[Rows, list[str]]:
    """Lanes of host threads first, then streams, then links, each by number."""
    attributes = places.trace.nodes.attributes
    known = [attributes.present(name) for name in ("thread", "tid", "stream", "device")]
    thread, tid, stream, device = (
        attributes.dense(name, -1, np.int64) for name in ("thread", "tid", "stream", "device")
    )
    threaded = places.on_host | (known[0] & ~known[2])
    number = np.where(known[0], thread, np.where(known[1], tid, -1))
    form = np.where(threaded, 0, np.where(known[2], 1, np.where(places.communication, 3, 2)))
    first = np.where(threaded, number, np.where(known[3], device, -1))
    second = np.where(form == 1, stream, -1)
    keys, lane = np.unique(np.stack((form, first, second)), axis=1, return_inverse=True)
    several = len({int(d) for f, d, _ in keys.T.tolist() if f == 1}) > 1
    names = [_lane_name(*key, several=several) for key in keys.T.tolist()]
    return lane.ravel(), names


def _lane_name(form: int, first: int, second: int, *, several: bool) -> str:
    if form == 0:
        return "host" if first < 0 else f"thread {first}"
    device = f"device {first}" if first >= 0 else "device"
    if form == 1:
        return f"{device} stream {second}" if several else f"stream {second}"
    return device if form == 2 else "links"
