"""The plan of a run: the operations of a trace that are to run, their tensors, what is left out.

It needs no PyTorch: everything in it comes from the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

import numpy as np

from chakra_et.benchmark import reasons
from chakra_et.benchmark.arguments import View
from chakra_et.benchmark.calls import Call, read_call
from chakra_et.benchmark.host_tree import HostTree
from chakra_et.benchmark.lifetimes import keep_gradients
from chakra_et.benchmark.schema import Schema
from chakra_et.benchmark.selection import COMMUNICATION, Candidates, Selection, select
from chakra_et.benchmark.views import Memory, Storage
from chakra_et.benchmark.window import nodes_in
from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.linker.window.cut import Window
from chakra_et.model import EdgeKind, Trace

NO_STREAM: Final = -1
"""Of an operation that launched nothing."""


class Kind(IntEnum):
    """Who makes an operation run."""

    OPERATOR = 0
    COMMUNICATION = 1
    KERNEL = 2


@dataclass(frozen=True)
class Choice:
    """Which part of a trace is planned, and what is at hand to run it."""

    window: Window | None = None
    """Some steps, or an annotation; None for all of it."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces of operators that modules bring along."""


@dataclass
class Operation:
    """One operation of the plan, in the order of the trace.

    `inputs` and `outputs` hold a `Ref` for each tensor. Times are those of the recording: when it
    began (relative to the first operation), how long the host was in it, how long the device work
    took that it launched, and how long nothing ran before it. `reason` is empty where it can run.
    """

    row: int
    name: str
    kind: Kind
    schema: Schema | None
    inputs: Any
    outputs: Any
    reason: str
    start_ns: int
    duration_ns: int
    device_ns: int
    gap_ns: int
    carries: list[int] = field(default_factory=list)
    """Rows of the collectives and messages that it asks for."""
    stream: int = NO_STREAM
    """The stream of the device on which it launched its first work."""

    @property
    def given(self) -> dict[str, Any]:
        """Its inputs by the names of the schema's arguments; none without a schema."""
        arguments = () if self.schema is None else self.schema.arguments
        return {a.name: value for a, value in zip(arguments, self.inputs, strict=False)}


@dataclass(frozen=True)
class Replaced:
    """An operator that cannot run, and what it took beside the operators that run in its place."""

    row: int
    name: str
    reason: str
    own_ns: int


@dataclass
class Plan:
    """What a trace is to run; views and storages are numbered by their places."""

    trace: Trace
    operations: list[Operation]
    views: list[View]
    storages: list[Storage]
    opened: int
    """How many composite operators gave way to those that they called."""
    opened_ns: int
    """What these took beside the operators that they called."""
    replaced: list[Replaced]
    """Operators that cannot run, of whose work only operators that they called are left."""

    @cached_property
    def peak_bytes(self) -> int:
        """The most bytes of storages that are there at once."""
        change = np.zeros(len(self.operations) + 1, np.int64)
        for storage in self.storages:
            if storage.born < 0:
                change[0] += storage.bytes
            else:
                change[storage.born] += storage.bytes
                change[storage.last + 1] -= storage.bytes
        return int(np.cumsum(change).max(initial=0))

    @property
    def external_bytes(self) -> int:
        """The bytes of storages that are there from the start."""
        return sum(storage.bytes for storage in self.storages if storage.born < 0)


def plan_of(trace: Trace, choice: Choice = Choice()) -> Plan:
    """Plan a trace. Raises ChakraError where it tells of no operation what was called."""
    tree = HostTree.of(trace)
    schemas = trace.nodes.attributes.dense("op_schema", "", object).tolist()
    calls: dict[int, Call] = {}

    def call(row: int) -> Call:
        if row not in calls:
            calls[row] = read_call(trace.nodes, row, schemas[row], choice.namespaces)
        return calls[row]

    candidates = Candidates.of(tree, schemas)
    window = nodes_in(tree, choice.window)
    chosen = select(tree, candidates, window, lambda row: bool(call(row).reason))
    if not any(schemas[row] or candidates.kernels[row] for row in chosen.rows.tolist()):
        raise ChakraError(
            "no operation of the host has a schema"
            + ("" if choice.window is None else f" in {choice.window.described}"),
            remedy="Record a host trace too, with ExecutionTraceObserver or `chakra collect`.",
        )
    own_ns = trace.nodes.attributes.dense("exclusive_ns", 0, np.int64)
    replaced = [
        Replaced(row, trace.nodes[row].name, call(row).reason, int(own_ns[row]))
        for row in chosen.replaced.tolist()
    ]
    opened_ns = int(own_ns[chosen.opened].sum())
    operations, memory = _operations(tree, candidates, chosen, call)
    return Plan(
        trace,
        operations,
        memory.views,
        memory.storages,
        len(chosen.opened),
        opened_ns,
        replaced,
    )


def _operations(
    tree: HostTree, candidates: Candidates, chosen: Selection, call: Callable[[int], Call]
) -> tuple[list[Operation], Memory]:
    trace, rows = tree.trace, chosen.rows
    memory = Memory()
    start, gap = _times(tree, rows)
    device = _device_ns(tree, chosen)
    carries = _carried(tree, chosen)
    stream = _streams(tree, chosen)
    names = trace.nodes.name
    operations = []
    for place, row in enumerate(rows.tolist()):
        kind, called = _kind(candidates, row), call(row)
        inputs, outputs = memory.take(place, called.inputs, called.outputs)
        operation = Operation(
            row,
            names[row],
            kind,
            called.schema,
            inputs,
            outputs,
            _reason(kind, called),
            start_ns=int(start[place]),
            duration_ns=int(tree.inclusive_ns[row]),
            device_ns=int(device[row]),
            gap_ns=int(gap[place]),
            carries=carries.get(row, []),
            stream=int(stream[place]),
        )
        operations.append(operation)
    keep_gradients(tree, rows, memory)
    return operations, memory


def _kind(candidates: Candidates, row: int) -> Kind:
    if candidates.communicates[row]:
        return Kind.COMMUNICATION
    return Kind.KERNEL if candidates.kernels[row] else Kind.OPERATOR


def _reason(kind: Kind, call: Call) -> str:
    if kind is Kind.COMMUNICATION:
        return reasons.COMMUNICATION
    return reasons.KERNEL if kind is Kind.KERNEL else call.reason


def _times(tree: HostTree, rows: Rows) -> tuple[Rows, Rows]:
    """Starts since the first, and the time before each in which none of them ran."""
    begin = np.where(tree.timed[rows], tree.trace.nodes.start_ns[rows], 0)
    timed = tree.timed[rows]
    if not timed.any():
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    begin = np.where(timed, begin - begin[timed].min(), 0)
    end = np.maximum.accumulate(np.where(timed, begin + tree.inclusive_ns[rows], 0))
    before = np.append(0, end[:-1])
    gap = np.where(timed, np.maximum(begin - before, 0), 0)
    return begin, gap


def _device_ns(tree: HostTree, chosen: Selection) -> Rows:
    """The device work that each chosen row launched, with all that it called."""
    took = np.zeros(len(tree.caller), np.int64)
    inside = chosen.cover >= 0
    np.add.at(took, chosen.cover[inside], tree.device_ns[inside])
    return took


def _streams(tree: HostTree, chosen: Selection) -> Rows:
    """The stream of the first device work that each chosen row launched, or its callees."""
    trace = tree.trace
    source, target = trace.source_rows(), trace.edges.target
    launched = np.flatnonzero((trace.edges.kind == EdgeKind.LAUNCH) & (source >= 0))
    launched = launched[chosen.cover[source[launched]] >= 0][::-1]
    stream = np.full(len(tree.caller), NO_STREAM, np.int64)
    told = trace.nodes.attributes.dense("stream", NO_STREAM, np.int64)
    stream[chosen.cover[source[launched]]] = told[target[launched]]
    return stream[chosen.rows]


def _carried(tree: HostTree, chosen: Selection) -> dict[int, list[int]]:
    """For chosen rows, the collectives and messages that they, or their callees, ask for."""
    trace = tree.trace
    source, target = trace.source_rows(), trace.edges.target
    asked = np.isin(trace.nodes.type[target], COMMUNICATION) & (source >= 0)
    asked[asked] = chosen.cover[source[asked]] >= 0
    found: dict[int, list[int]] = {}
    for row, carrier in zip(
        target[asked].tolist(), chosen.cover[source[asked]].tolist(), strict=True
    ):
        rows = found.setdefault(carrier, [])
        if row not in rows:
            rows.append(row)
    return found
