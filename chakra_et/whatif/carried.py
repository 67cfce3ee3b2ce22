"""Transfers of tensors that get other lengths: what they carry then, and how long they take.

A transfer often carries a flat tensor, such as all gradients of a bucket. What it consists of, the
nodes tell that write and read it: their tensors lie in the same memory, and have their own shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod

import msgspec
import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import Rows
from chakra_et.converters.pytorch.tensors import find_tensors
from chakra_et.definitions import EdgeKind, Kind
from chakra_et.graph import Adjacency
from chakra_et.kerneltimes import Calls, KernelTimes, Provenance
from chakra_et.kerneltimes.features import BYTES, Key
from chakra_et.model import Nodes, Trace, TraceSet
from chakra_et.passes.edit import set_attribute
from chakra_et.replay.columns import columns_of
from chakra_et.whatif.edit import Change, with_parts
from chakra_et.whatif.recorded.transfers import (
    EXTRAPOLATED,
    TransferLine,
    common_times,
    flat_shapes,
)

Shaped = Callable[[bytes], bytes]
"""Texts of shapes with other lengths."""


@dataclass(frozen=True)
class _Tensor:
    """Where a tensor lies, in bytes, and how many elements it has and gets."""

    storage: int
    begin: int
    end: int
    count: int
    after: int


def sizes_after(trace: Trace, shaped: Shaped) -> tuple[Rows, Rows]:
    """Rows of the transfers that carry something of other lengths, and their bytes then."""
    nodes, edges, source = trace.nodes, trace.edges, trace.source_rows()
    sizes = nodes.attributes.dense("comm_size", -1, np.int64)
    rows = np.flatnonzero(columns_of(trace).communication & (sizes > 0))
    if not len(rows):
        return rows, rows
    data = (edges.kind == EdgeKind.DATA) & (source >= 0)
    ends = source[data], edges.target[data]
    beside = Adjacency.of(len(nodes), *(np.concatenate(pair) for pair in (ends, ends[::-1])))
    neighbours = [beside.at(row).tolist() for row in rows.tolist()]
    tensors = _Tensors(nodes, {*rows.tolist(), *(n for some in neighbours for n in some)}, shaped)
    found = {}
    for row, others in zip(rows.tolist(), neighbours, strict=True):
        own = tensors.of(row)
        more = _more(own, [t for other in others for t in tensors.of(other)])
        if more:
            count = sum(tensor.count for tensor in own)
            found[row] = max(int(sizes[row]) * (count + more) // count, 1)
    return np.array(list(found), np.int64), np.array(list(found.values()), np.int64)


def _more(own: list[_Tensor], others: list[_Tensor]) -> int:
    """How many elements more some tensors get, by themselves or by what lies in their memory."""
    by_shape = sum(tensor.after - tensor.count for tensor in own)
    if by_shape or not own:
        return by_shape
    inside = {
        (t.storage, t.begin, t.end): t
        for t in others
        if t.after != t.count
        and any(o.storage == t.storage and o.begin <= t.begin and t.end <= o.end for o in own)
    }
    more, reached = 0, (-1, -1)
    for (storage, begin, end), tensor in sorted(inside.items()):
        # Views of the same part count once.
        if (storage, begin) >= reached:
            more, reached = more + tensor.after - tensor.count, (storage, end)
    return more


class _Tensors:
    """The tensors that some nodes work on, where their shapes are told."""

    def __init__(self, nodes: Nodes, rows: Iterable[int], shaped: Shaped) -> None:
        some = np.fromiter(rows, np.int64)
        self._columns = nodes.input_code, nodes.output_code
        codes = distinct(np.concatenate([column[some] for column in self._columns]))
        texts = [(code, nodes.texts[code]) for code in codes[codes >= 0].tolist()]
        places = find_tensors([text[0] for _, text in texts])
        self._of: dict[int, list[_Tensor]] = {}
        for number, (code, (_, shapes, types, *_)) in enumerate(texts):
            mine = slice(*places.offsets[number : number + 2].tolist())
            lies = [c[mine].tolist() for c in (places.storage, places.begin, places.end)]
            counts = [_counts(text, types) for text in (shapes, shaped(shapes))]
            if len({len(column) for column in (*lies, *counts)}) == 1:
                found = (_Tensor(*each) for each in zip(*lies, *counts, strict=True))
                self._of[code] = [t for t in found if t.count and t.end > t.begin]

    def of(self, row: int) -> list[_Tensor]:
        """Those of one node."""
        return [t for column in self._columns for t in self._of.get(int(column[row]), [])]


def _counts(shapes: bytes, types: bytes) -> list[int]:
    """How many elements each tensor has; none where the texts do not say."""
    try:
        told = zip(msgspec.json.decode(shapes), msgspec.json.decode(types), strict=True)
        found = []
        for shape, kind in told:
            if "Tensor(" in kind:
                found += [prod(one) for one in ([shape] if kind.startswith("Tensor") else shape)]
    except (msgspec.DecodeError, TypeError, ValueError):
        return []
    return found


def with_sizes(
    traces: TraceSet,
    sizes: dict[int, tuple[Rows, Rows]],
    calls: dict[int, Calls],
    table: KernelTimes | None,
    change: Change,
) -> tuple[TraceSet, Change]:
    """The run whose transfers carry other bytes: rows of each rank, and how many.

    What they take once all members are there follows a table that knows such transfers, else the
    other transfers of the run. `calls` are those of the run before.
    """
    common = common_times(traces)
    times = _Times(traces, calls, common, table)
    provenance = Counter(change.provenance)
    made, nodes, was, now = {}, change.nodes, change.before_ns, change.after_ns
    for rank, trace in traces.items():
        columns, (rows, after) = columns_of(trace), sizes[rank]
        own = columns.parts.by_owner(len(columns))
        added = np.zeros(len(columns), np.int64)
        for row, size in zip(rows.tolist(), after.tolist(), strict=True):
            factor, source = times.longer(rank, row, size)
            took = common.get((rank, row), int(own[row]))
            added[row] = round(took * factor) - took
            provenance[source] += 1
            nodes, was, now = nodes + 1, was + took, now + took + int(added[row])
        parts = columns.parts
        ns = np.maximum(parts.ns + np.where(parts.own, added[parts.node], 0), 0)
        made[rank] = with_parts(trace, columns, ns) if len(rows) else trace
        if len(rows):
            _carry(made[rank].nodes, rows, after)
    changed = replace(change, nodes=nodes, before_ns=was, after_ns=now, provenance=dict(provenance))
    return TraceSet(made), changed


def _carry(nodes: Nodes, rows: Rows, after: Rows) -> None:
    """Let transfers have other bytes, and flat tensors of as many."""
    before = nodes.attributes.dense("comm_size", 0, np.int64)[rows]
    set_attribute(nodes.attributes, "comm_size", Kind.INT64, rows, after)
    texts = list(nodes.texts)
    known: dict[tuple[int, int, int], int] = {}
    for row, old, new in zip(rows.tolist(), before.tolist(), after.tolist(), strict=True):
        code = int(nodes.input_code[row])
        if code < 0:
            continue
        if (code, old, new) not in known:
            known[code, old, new] = len(texts)
            texts.append((texts[code][0], flat_shapes(texts[code][1], old, new), *texts[code][2:]))
        nodes.input_code[row] = known[code, old, new]
    nodes.texts = texts


class _Times:
    """How much longer transfers take with other bytes."""

    def __init__(
        self,
        traces: TraceSet,
        calls: dict[int, Calls],
        common: dict[tuple[int, int], int],
        table: KernelTimes | None,
    ) -> None:
        self._calls, self._table = calls, table
        self._known = set() if table is None else set(table.samples.keys)
        points: dict[str, list[tuple[int, int]]] = {}
        for (rank, row), ns in common.items():
            key, size = self._call(rank, row)
            if size > 0:
                points.setdefault(key.operator, []).append((size, ns))
        self._lines = {name: TransferLine(some) for name, some in points.items()}

    def _call(self, rank: int, row: int) -> tuple[Key, int]:
        calls = self._calls[rank]
        call = int(calls.call_of[row])
        size = calls.features[call, BYTES]
        return calls.keys[call], int(size) if np.isfinite(size) else 0

    def longer(self, rank: int, row: int, size: int) -> tuple[float, str]:
        """How many times longer a transfer takes with so many bytes, and what tells that."""
        key, before = self._call(rank, row)
        if self._table is not None and key in self._known:
            features = self._calls[rank].features[[int(self._calls[rank].call_of[row])] * 2]
            features[1, BYTES] = size
            (then, now), told = self._table.times_ns([key] * 2, features)
            if then > 0 and np.isfinite(now):
                return float(now / then), Provenance(told.max()).label
        if key.operator not in self._lines:
            return size / max(before, 1), EXTRAPOLATED
        line = self._lines[key.operator]
        (then, _), (now, source) = line.time_ns(before), line.time_ns(size)
        return now / max(then, 1), source
