"""Passes over nodes that a selector names: split in parts, followed by more work, moved."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from chakra_et.errors import ChakraError
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace, TraceSet, time_parts
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
    surgery, rows = Surgery(trace), np.flatnonzero(select(trace, selector))
    parts = time_parts(trace.nodes)
    own = np.zeros(len(trace.nodes), np.int64)
    own[parts.node[parts.own]] = parts.ns[parts.own]
    sizes, chains = {name: numbers_of(trace, name) for name in _DIVIDED}, _chains(trace)
    for row in rows.tolist():
        more = surgery.copies(np.full(count - 1, row))
        surgery.prompt(more)
        surgery.alone(more)
        copies = [row, *more.tolist()]
        surgery.rest(row, copies[-1])
        took = int(own[row])
        # What a member of a transfer waits for the others it waits before the first part.
        shared = common.get(row, took)
        begin = int(trace.nodes.start_ns[row])
        for place, part in enumerate(copies):
            ns = _share(shared, count, place) + (max(took - shared, 0) if not place else 0)
            surgery.takes(part, ns)
            if begin != UNKNOWN_NS and place:
                surgery.starts(part, begin)
            begin += ns if begin != UNKNOWN_NS else 0
            for name, of in sizes.items():
                if row in of:
                    surgery.tell(name, part, _share(of[row], count, place))
        _follow(surgery, copies, chains[row], launches=True)
    return surgery.finish(), len(rows), int(own[rows].sum()), int(own[rows].sum())


def _share(whole: int, count: int, place: int) -> int:
    """A part of a number: all parts add up to it."""
    return whole * (place + 1) // count - whole * place // count


def numbers_of(trace: Trace, name: str) -> dict[int, int]:
    """A whole number of the nodes that have it, by row."""
    found: dict[int, int] = {}
    for column in trace.nodes.attributes.named(name):
        found.update(zip(column.rows.tolist(), map(int, column.values), strict=True))
    return found


def _follow(surgery: Surgery, parts: list[int], chain: EdgeKind, *, launches: bool = False) -> None:
    """Let copies of a node come behind it, and what waited for it wait for the last of them."""
    row, *more = parts
    into = surgery.into(row)
    for call in surgery.source[into[surgery.kind[into] == EdgeKind.LAUNCH]].tolist():
        # A replay asks what had been launched when a call waits for a stream.
        surgery.wait(more, np.full(len(more), call), EdgeKind.LAUNCH)
    surgery.behind(row, parts[-1], launches=launches)
    surgery.put(more, row, chain)


def _chains(trace: Trace) -> list[EdgeKind]:
    """In which chain each node comes: that of its thread, or of its stream."""
    on_host = trace.nodes.attributes.dense("is_cpu_op", False, np.bool_)
    return [EdgeKind.PROGRAM if host else EdgeKind.STREAM for host in on_host.tolist()]


def insert(text: str, selector: str, value: str) -> Edit:
    """Behind each node that a selector names comes another one, which takes so many us."""
    ns = round(number(text, value, least=0) * 1000)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        return _each(traces, text, "added", lambda _, trace: _inserted(text, trace, selector, ns))

    return Edit(text, apply)


def _inserted(text: str, trace: Trace, selector: str, ns: int) -> tuple[Trace, int, int, int]:
    surgery, chosen = Surgery(trace), select(trace, selector)
    if (chosen & columns_of(trace).communication).any():
        raise ChakraError(
            f"{text}: this names transfers, and other ranks would have to make as many",
            remedy="Name what computes, or use delay:SELECTOR=US.",
        )
    rows, chains = np.flatnonzero(chosen), _chains(trace)
    worked = {name: trace.nodes.attributes.present(name) for name in ("num_ops", "tensor_size")}
    for row in rows.tolist():
        more = surgery.copies(np.array([row]))
        surgery.prompt(more)
        surgery.alone(more)
        new = int(more[0])
        surgery.takes(new, ns)
        surgery.name(new, INSERTED)
        for name, told in worked.items():
            if told[row]:
                surgery.tell(name, new, 0)
        _follow(surgery, [row, new], chains[row])
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
