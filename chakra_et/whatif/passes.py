"""Passes over nodes that a selector names: split in parts, followed by more work, moved."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import UNKNOWN_NS, TimeParts, Trace, TraceSet, time_parts
from chakra_et.replay.columns import columns_of
from chakra_et.replay.edit import move_after
from chakra_et.replay.selectors import select
from chakra_et.whatif.edit import Change, Edit
from chakra_et.whatif.recorded.transfers import common_times
from chakra_et.whatif.surgery import Surgery
from chakra_et.whatif.values import number, whole

_DIVIDED = ("comm_size", "num_ops", "tensor_size")
_MOST = 10_000
INSERTED = "inserted"
"""The name of what `insert` puts in."""


def split(text: str, selector: str, value: str) -> Edit:
    """Each node that a selector names becomes N, one after the other, with a part of its work."""
    parts = whole(text, value, least=1)
    if parts > _MOST:
        raise ChakraError(f"{text}: {_MOST:,} parts are the most", remedy="Give fewer.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        if parts == 1:
            return traces, Change(text, 0, 0, 0, "split")
        common = common_times(traces)
        return _each(traces, text, "split", lambda rank, trace: _split(
            trace, selector, parts, {row: ns for (r, row), ns in common.items() if r == rank}
        ))  # fmt: skip

    return Edit(text, apply)


def _split(
    trace: Trace, selector: str, count: int, common: dict[int, int]
) -> tuple[Trace, int, int, int]:
    nodes, surgery, rows = trace.nodes, Surgery(trace), np.flatnonzero(select(trace, selector))
    parts = np.column_stack([rows, surgery.more(rows, count - 1, launches=True)])
    surgery.rest(rows, parts[:, -1])
    of_all = time_parts(nodes)
    own = TimeParts(of_all.node, of_all.node, of_all.ns * of_all.own).by_node(len(nodes))
    shared = own.copy()
    shared[list(common)] = list(common.values())
    # What a member of a transfer waits for the others it waits before the first part.
    ns = _shares(shared[rows], count)
    ns[:, 0] += np.maximum(own - shared, 0)[rows]
    surgery.takes(parts, ns)
    timed = nodes.start_ns[rows] != UNKNOWN_NS
    begins = nodes.start_ns[rows, None] + np.cumsum(ns, axis=1) - ns
    surgery.starts(parts[timed], begins[timed])
    for name in _DIVIDED:
        has = nodes.attributes.present(name)[rows]
        sizes = nodes.attributes.dense(name, 0, np.int64)[rows]
        surgery.tell(name, parts[has], _shares(sizes[has], count))
    return surgery.finish(), len(rows), int(own[rows].sum()), int(own[rows].sum())


def _shares(whole: Rows, count: int) -> Rows:
    """Parts of numbers, int64[numbers, count]: all parts of one add up to it."""
    each, left = (column[:, None] for column in np.divmod(whole, count))
    ends = np.arange(1, count + 1)
    return np.diff(each * ends + left * ends // count, axis=1, prepend=0)


def insert(text: str, selector: str, value: str) -> Edit:
    """Behind each node that a selector names comes another one, which takes so many us."""
    ns = round(number(text, value, least=0) * 1000)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        return _each(traces, text, "added", lambda _, trace: _inserted(text, trace, selector, ns))

    return Edit(text, apply)


def _inserted(text: str, trace: Trace, selector: str, ns: int) -> tuple[Trace, int, int, int]:
    chosen = select(trace, selector)
    if (chosen & columns_of(trace).communication).any():
        raise ChakraError(
            f"{text}: this names transfers, and other ranks would have to make as many",
            remedy="Name what computes, or use delay:SELECTOR=US.",
        )
    surgery, rows = Surgery(trace), np.flatnonzero(chosen)
    (new,) = surgery.more(rows, 1).T
    surgery.takes(new, ns)
    surgery.name(new, INSERTED)
    for name in ("num_ops", "tensor_size"):
        surgery.tell(name, new[trace.nodes.attributes.present(name)[rows]], 0)
    return surgery.finish(), len(rows), 0, ns * len(rows)


def move(text: str, _: str, value: str) -> Edit:
    """A host node comes right behind another one of its thread: `ID:OTHER` or `RANK/ID:OTHER`."""
    match = re.fullmatch(r"(?:(\d{1,9})/)?(\d{1,18}):(\d{1,18})", value)
    if match is None:
        raise ChakraError(
            f"{text}: expected two ids, got {value!r}",
            remedy="Write move=ID:OTHER or RANK/ID:OTHER.",
        )
    told, node, other = match[1], int(match[2]), int(match[3])

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        rank = int(told) if told else next(iter(traces))
        if rank not in traces or (told is None and len(traces) > 1):
            raise ChakraError(f"{text}: which rank?", remedy="Write move=RANK/ID:OTHER.")
        try:
            moved = move_after(traces[rank], node, other)
        except KeyError as error:
            raise ChakraError(
                f"{text}: {error.args[0]}", remedy="chakra show lists ids."
            ) from error
        return TraceSet({**traces, rank: moved}), Change(text, 1, 0, 0, "order")

    return Edit(text, apply)


def _each(
    traces: TraceSet,
    text: str,
    source: str,
    change: Callable[[int, Trace], tuple[Trace, int, int, int]],
) -> tuple[TraceSet, Change]:
    """All ranks changed, and what that comes to."""
    made, nodes, before, after = {}, 0, 0, 0
    for rank, trace in traces.items():
        made[rank], count, was, now = change(rank, trace)
        nodes, before, after = nodes + count, before + was, after + now
    return TraceSet(made), Change(text, nodes, before, after, source)
