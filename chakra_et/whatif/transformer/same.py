"""Whether the graph of a plan is the one that is there, node by node; how long its parts took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.validators.view import TraceView
from chakra_et.workloads.generate import program
from chakra_et.workloads.operators import Operator
from chakra_et.workloads.plan import Plan

_NUMBERS: Final = ("num_ops", "tensor_size", "layer", "micro_batch", "stream", "comm_type",
                   "comm_size", "comm_src", "comm_dst", "comm_tag", "is_cpu_op")  # fmt: skip
_TEXTS: Final = ("op_type", "phase")
_TIMES: Final = ("start", "own_start_ns", "lag_ns", "time_parts", "edge_kinds", "edge_evidence")


@dataclass
class Numbered:
    """A provider of durations that numbers operators: each takes as many ns as its number is."""

    operators: dict[Operator, int] = field(default_factory=dict)

    def __call__(self, operator: Operator) -> int:
        return self.operators.setdefault(operator, len(self.operators) + 1)


@dataclass
class Seen:
    """What the nodes of a run took: arrays over nodes of all ranks, each for one rank after the
    other.

    `number[n]` numbers the operator of node n, from 1 on; 0 for transfers. `names` has what the
    nodes of an operator are called, and `left_out` counts attributes that a plan does not tell.
    """

    operators: dict[Operator, int] = field(default_factory=dict)
    ranks: dict[int, tuple[Rows, Trace]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)


def differs(
    plan: Plan, traces: TraceSet, seen: Seen, *, tensors: bool, all_flops: bool
) -> str | None:
    """The first difference between the graph of a plan and the one that is there; None if none.

    Starts, durations, ids and names may differ: names alike for all nodes of one name.
    """
    numbered = Numbered(seen.operators)
    workload = plan.workload(tensors=tensors)
    make = program(plan, numbered, count_pointwise=all_flops)
    try:
        for columns, ranks in workload.programs(make):
            for rank in ranks.tolist():
                expected = columns.trace(rank)
                found = _difference(expected, traces[rank], rank, seen)
                if found is not None:
                    return found
                number = np.where(
                    expected.nodes.type == NodeType.COMP, expected.nodes.duration_ns, 0
                )
                seen.ranks[rank] = (number, traces[rank])
    except ChakraError as error:
        return error.problem
    return None


def alike(some: TraceSet, others: TraceSet) -> bool:
    """Whether two runs are the same, but for their names and times."""
    return list(some) == list(others) and all(
        _difference(trace, others[rank], rank, Seen()) is None for rank, trace in some.items()
    )


def _difference(expected: Trace, given: Trace, rank: int, seen: Seen) -> str | None:
    a, b = expected.nodes, given.nodes
    if len(a) != len(b):
        return (
            f"rank {rank} has {len(b):,} nodes, where a transformer of these sizes has {len(a):,}"
        )
    old, new = TraceView(expected, rank), TraceView(given, rank)
    checks: list[tuple[str, Callable[[], npt.NDArray[Any]]]] = [
        ("type", lambda: a.type != b.type),
        ("name", lambda: _renamed(a, b, seen.names)),
        *((name, lambda name=name: old.integers(name) != new.integers(name)) for name in _NUMBERS),
        *((name, lambda name=name: old.texts(name) != new.texts(name)) for name in _TEXTS),
        ("inputs", lambda: _texts_differ(a, b, "input_code")),
        ("outputs", lambda: _texts_differ(a, b, "output_code")),
        ("group", lambda: _members(expected, old) != _members(given, new)),
        ("edges", lambda: _edges_differ(expected, given)),
    ]
    for what, check in checks:
        rows = np.flatnonzero(check())
        if len(rows):
            row = int(rows[0])
            name = b.names[int(b.name_code[row])]
            return (
                f"node {b.id[row]} of rank {rank}, {name!r}, has another {what} than in a "
                "transformer of these sizes"
            )
    for column in b.attributes.columns:
        name = column.key.name
        if not a.attributes.named(name) and name not in _TIMES:
            seen.left_out[name] = seen.left_out.get(name, 0) + len(column.rows)
    return None


def _renamed(a: Any, b: Any, names: dict[str, str]) -> npt.NDArray[np.bool_]:
    """Nodes whose names are not those that others of the same expected name have."""
    wanted = np.full(len(a.names), -1, np.int64)
    place = {name: code for code, name in enumerate(b.names)}
    for code, given in _pairs(a.name_code, b.name_code)[0]:
        told = names.setdefault(a.names[code], b.names[given])
        wanted[code] = place.get(told, -1)
    return np.asarray(wanted[a.name_code] != b.name_code)


def _texts_differ(a: Any, b: Any, column: str) -> npt.NDArray[np.bool_]:
    """Nodes whose shapes or types of inputs or outputs are others."""
    first, second = getattr(a, column), getattr(b, column)
    pairs, place = _pairs(first, second)
    wrong = [_text(a.texts, x) != _text(b.texts, y) for x, y in pairs]
    return np.array(wrong, np.bool_)[place]


def _pairs(first: Rows, second: Rows) -> tuple[list[tuple[int, int]], Rows]:
    """The distinct pairs of two columns of codes, and which of them each row has."""
    number = codes(first, second)
    _, where = np.unique(number, return_index=True)
    return list(zip(first[where].tolist(), second[where].tolist(), strict=True)), number


def _text(texts: Any, code: int) -> tuple[bytes, ...]:
    return () if code < 0 else tuple(texts[code][1:3])


def _members(trace: Trace, view: TraceView) -> npt.NDArray[np.int64]:
    """The group of each node as a number that is the same for the same ranks."""
    known = {group.name: hash(tuple(group.ranks)) for group in trace.groups}
    names, place = np.unique(view.texts("pg_name").astype(str), return_inverse=True)
    codes = [known.get(name, 0 if not name else 1) for name in names.tolist()]
    return np.array(codes, np.int64)[place.ravel()]


def _edges_differ(expected: Trace, given: Trace) -> npt.NDArray[np.bool_]:
    """Nodes that wait for others, or otherwise."""
    a, b = expected.edges, given.edges
    counts = np.diff(a.offsets) != np.diff(b.offsets)
    if counts.any():
        return np.asarray(counts)
    wrong = (expected.source_rows() != given.source_rows()) | (a.kind != b.kind)
    found = np.zeros(len(counts), np.bool_)
    found[a.target[wrong]] = True
    return found
