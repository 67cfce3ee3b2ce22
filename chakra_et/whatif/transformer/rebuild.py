"""The run that follows another plan, with the times of the one that was there where they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.validators.view import TraceView
from chakra_et.whatif.edit import MissedError
from chakra_et.whatif.recorded.transfers import RECORDED
from chakra_et.whatif.transformer.recognise import Recognised
from chakra_et.whatif.transformer.same import Numbered, Seen
from chakra_et.whatif.transformer.tabled import TableTimes
from chakra_et.whatif.transformer.times import OperatorTimes, TransferTimes, transfers_of
from chakra_et.workloads.generate import program
from chakra_et.workloads.operators import Operator
from chakra_et.workloads.plan import Plan


@dataclass(frozen=True)
class Rebuilt:
    """The traces of another plan; `provenance` counts nodes by where their times come from."""

    traces: TraceSet
    provenance: Counter[str]


def rebuild(found: Recognised, plan: Plan, table: TableTimes | None = None) -> Rebuilt:
    """The run of a plan. What did not run takes what the table says, if one is given and tells.

    Raises MissedError where such a plan cannot run.
    """
    maker = _Maker(found, plan, table)
    numbered = Numbered()
    workload = plan.workload(tensors=found.tensors)
    traces: dict[int, Trace] = {}
    try:
        make = program(plan, numbered, count_pointwise=found.all_flops)
        for columns, ranks in workload.programs(make):
            for rank in ranks.tolist():
                traces[rank] = maker.timed(columns.trace(rank), rank, list(numbered.operators))
    except ChakraError as error:
        raise MissedError(error.problem, error.remedy or "") from error
    return Rebuilt(TraceSet(traces), maker.provenance)


class _Maker:
    """Gives nodes of a new plan their times and names."""

    def __init__(self, found: Recognised, plan: Plan, table: TableTimes | None) -> None:
        self._seen = found.seen
        self._table = table
        self._places = _Places(found.seen, found.plan, plan)
        self._operators = OperatorTimes.of(found.seen)
        self._transfers = TransferTimes.of(found.seen)
        self._known: dict[Operator, tuple[int, str]] = {}
        self.provenance: Counter[str] = Counter()

    def timed(self, trace: Trace, rank: int, operators: list[Operator]) -> Trace:
        """A trace in which the duration of a node is the number of its operator, with its time."""
        nodes = trace.nodes
        number = np.where(nodes.type == NodeType.COMP, nodes.duration_ns, 0)
        ns = np.zeros(len(nodes), np.int64)
        for one, first, count in zip(
            *(c.tolist() for c in np.unique(number, return_index=True, return_counts=True)),
            strict=True,
        ):
            if not one:
                continue
            operator = operators[one - 1]
            if operator not in self._known:
                told = None if operator in self._operators.took else self._by_table(trace, first)
                self._known[operator] = told or self._operators.time_ns(operator)
            ns[number == one], source = self._known[operator]
            self.provenance[source] += count
            if source == RECORDED and operator not in self._operators.steady:
                rows = np.flatnonzero(number == one)
                ns[rows] = self._places.times_ns(trace, rank, rows, operator, ns[rows])
        for row, key in zip(*transfers_of(trace, rank), strict=True):
            told = None if key in self._transfers.took else self._by_table(trace, row)
            ns[row], source = told or self._transfers.time_ns(key)
            self.provenance[source] += 1
        nodes.duration_ns = ns
        nodes.names = [self._seen.names.get(name, name) for name in nodes.names]
        return trace

    def _by_table(self, trace: Trace, row: int) -> tuple[int, str] | None:
        """What the table says of a node; None without one, or where it says nothing."""
        return None if self._table is None else self._table.time_ns(trace, row)


class _Places:
    """Times of operators that took now longer, now shorter: by rank, layer and micro-batch."""

    def __init__(self, seen: Seen, old: Plan, new: Plan) -> None:
        self._seen = seen
        self._old = old.workload().grid
        self._new = new.workload().grid
        self._known: dict[tuple[int, Operator], dict[tuple[int, int], list[int]]] = {}

    def times_ns(
        self, trace: Trace, rank: int, rows: Rows, operator: Operator, otherwise: Rows
    ) -> Rows:
        """The times that a rank's nodes of an operator took; `otherwise` where they did not run."""
        found: Rows = otherwise.copy()
        known = self._of(self._like(rank), operator)
        counted: Counter[tuple[int, int]] = Counter()
        for place, (_, key) in enumerate(_keyed(trace, rows)):
            took = known.get(key, [])
            if counted[key] < len(took):
                found[place] = took[counted[key]]
            counted[key] += 1
        return found

    def _like(self, rank: int) -> int:
        """The first stage's rank of the old run that lies where this one lies in its stage."""
        places = {axis: self._new.coordinate(axis, rank) % size
                  for axis, size in self._old.axes.items()
                  if axis != "pp" and axis in self._new.axes}  # fmt: skip
        return int(self._old.rank(**places))

    def _of(self, rank: int, operator: Operator) -> dict[tuple[int, int], list[int]]:
        """The times of an operator on all stages behind a rank, by layer and micro-batch."""
        if (rank, operator) not in self._known:
            found: dict[tuple[int, int], list[int]] = {}
            for stage in range(self._old.axes.get("pp", 1)):
                one = rank + (self._old.rank(pp=stage) if "pp" in self._old.axes else 0)
                number, trace = self._seen.ranks[one]
                rows = np.flatnonzero(number == self._seen.operators[operator])
                for row, key in _keyed(trace, rows):
                    found.setdefault(key, []).append(int(trace.nodes.duration_ns[row]))
            self._known[rank, operator] = found
        return self._known[rank, operator]


def _keyed(trace: Trace, rows: Rows) -> Iterator[tuple[int, tuple[int, int]]]:
    """Rows with their layer and micro-batch."""
    view = TraceView(trace)
    layers, batches = (view.integers(name)[rows].tolist() for name in ("layer", "micro_batch"))
    return zip(rows.tolist(), zip(layers, batches, strict=True), strict=True)
