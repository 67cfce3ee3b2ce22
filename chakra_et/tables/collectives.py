"""Collectives and messages: sizes, bandwidth, how much of them is exposed, who came last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.graph.intervals import covered_within
from chakra_et.model import Trace, TraceSet
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.figures import recorded_work
from chakra_et.replay.matching import Match, match_communication
from chakra_et.replay.planning import clock_offsets
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.places import Places
from chakra_et.tables.table import Column, Table, known, texts

_UNKNOWN: Final = -1
_SCALED: Final = frozenset({CollectiveType.ALL_GATHER, CollectiveType.GATHER})
"""Collectives whose message is as many times larger than an input as there are members."""
_ONE_OF_N: Final = frozenset(
    {
        CollectiveType.ALL_GATHER,
        CollectiveType.REDUCE_SCATTER,
        CollectiveType.REDUCE_SCATTER_BLOCK,
        CollectiveType.ALL_TO_ALL,
        CollectiveType.GATHER,
        CollectiveType.SCATTER,
    }
)
"""Collectives of which each member has its part already."""


def call_table(traces: Mapping[int, Trace]) -> Table:
    """Each collective and message once, in order of time, with what its members did.

    `rank` is the first member's, `node` the id of its node there. `start_ns` is when the last
    member began, on the clock of the first rank; `skew_ns` how long after the first one that was,
    `last_rank` which one it was. `transfer_ns` is the shortest duration of all members: all before
    the last one begins is waiting. `exposed_ns` is the time, of all members together, in which
    they did not compute (see `ranks`), of `member_ns`.

    `message_bytes` is the message of the nccl-tests: of all ranks' parts for an all-gather, of a
    rank's whole input otherwise. `algorithm_bytes_per_s` is that over the transfer time;
    `bus_bytes_per_s` what each link carries in a ring.
    """
    traces = traces if isinstance(traces, TraceSet) else TraceSet(traces)
    ranks = [columns_of(trace) for trace in traces.values()]
    calls = _calls(traces)
    place = {rank: i for i, rank in enumerate(traces)}
    members = [{place[rank]: row for rank, row in call.members.items()} for call in calls]
    offsets, alone = clock_offsets(ranks, members)
    hidden = [_hidden(columns) for columns in ranks]
    rows = [
        _row(call, rows, ranks, offsets, alone, hidden, list(traces))
        for call, rows in zip(calls, members, strict=True)
    ]
    names = _NAMES
    columns: dict[str, Column] = {
        name: _column([row[i] for row in rows], name) for i, name in enumerate(names)
    }
    sizes = _group_sizes(traces)
    columns["size"] = _size(columns, sizes)
    columns |= bandwidth(columns)
    order = np.argsort(np.ma.filled(columns["start_ns"], 0), kind="stable")
    return Table("collective calls", {n: columns[n] for n in _ORDER}, _NOTE).take(order)


_NAMES: Final = (
    "type", "group", "rank", "node", "members", "comm_bytes", "start_ns", "transfer_ns",
    "member_ns", "exposed_ns", "skew_ns", "last_rank",
)  # fmt: skip
_ORDER: Final = (
    "type", "group", "size", "members", "rank", "node", "start_ns", "message_bytes", "transfer_ns",
    "algorithm_bytes_per_s", "bus_bytes_per_s", "member_ns", "exposed_ns", "skew_ns", "last_rank",
)  # fmt: skip
_NOTE: Final = "transfer is the shortest duration of all members; skew is how far apart they start"


def _calls(traces: TraceSet) -> list[Match]:
    """All matched communications, and each other one as one of a single member."""
    matching = match_communication(traces)
    found = list(matching.matches)
    matched = {item for match in found for item in match.members.items()}
    for rank, trace in traces.items():
        for row in np.flatnonzero(Places(trace).communication).tolist():
            if (rank, row) not in matched:
                kind = trace.nodes.attributes.get(row, "comm_type")
                size = trace.nodes.attributes.get(row, "comm_size")
                known_kind = isinstance(kind, int) and kind in set(CollectiveType)
                found.append(
                    Match(
                        {rank: row},
                        CollectiveType(kind) if known_kind else None,
                        size if isinstance(size, int) else _UNKNOWN,
                        "",
                    )
                )
    return found


def _row(
    call: Match,
    members: dict[int, int],
    ranks: list[Columns],
    offsets: list[int],
    alone: list[int],
    hidden: list[Rows],
    names: list[int],
) -> tuple[Any, ...]:
    """What `_NAMES` says of one call."""
    first = next(iter(members))
    trace, row = ranks[first].trace, members[first]
    attributes = trace.nodes.attributes
    timed = {i: r for i, r in members.items() if ranks[i].timed[r]}
    took = [int(ranks[i].duration[r]) for i, r in timed.items() if ranks[i].duration[r] > 0]
    starts = {i: int(ranks[i].start[r]) - offsets[i] for i, r in timed.items() if i not in alone}
    hidden_ns = sum(int(hidden[i][r]) for i, r in timed.items())
    member_ns = sum(int(ranks[i].duration[r]) for i, r in timed.items())
    last = max(starts, key=lambda i: starts[i]) if len(starts) > 1 else None
    told = attributes.get(row, "comm_size")
    return (
        _type(trace, row, call.collective),
        attributes.get(row, "pg_name") or "",
        names[first],
        int(trace.nodes.id[row]),
        len(members),
        call.size_bytes if isinstance(told, int) else _UNKNOWN,
        max(starts.values()) if starts else (int(ranks[first].start[row]) if timed else None),
        min(took) if took else None,
        member_ns,
        max(member_ns - hidden_ns, 0),
        starts[last] - min(starts.values()) if last is not None else None,
        names[last] if last is not None else None,
    )


def _hidden(columns: Columns) -> Rows:
    """How much of the time of each communication its rank computed."""
    busy, _ = recorded_work(columns)
    rows = np.flatnonzero(columns.communication & columns.timed)
    start = columns.start[rows]
    hidden = np.zeros(len(columns), np.int64)
    hidden[rows] = covered_within(*busy, start, start + columns.duration[rows])
    return hidden


def _type(trace: Trace, row: int, collective: CollectiveType | None) -> str:
    kind = int(trace.nodes.type[row])
    if kind == NodeType.COMM_COLL:
        return "unknown collective" if collective is None else collective.name
    return "SEND_RECV"


def _column(items: list[Any], name: str) -> Column:
    if name in ("type", "group"):
        return texts(items)
    # Numbers of damaged files may fit into no 64 bits: they say nothing.
    there = np.array([item is not None and abs(item) < 1 << 63 for item in items], np.bool_)
    told = [item if fits else 0 for item, fits in zip(items, there.tolist(), strict=True)]
    return known(np.array(told, np.int64), there)


def _group_sizes(traces: TraceSet) -> dict[str, int]:
    return {group.name: group.size or len(group.ranks) for group in traces.groups}


def _size(columns: Mapping[str, Column], sizes: Mapping[str, int]) -> Column:
    """How many ranks take part in each call, also where not all of them were recorded."""
    pairs = zip(columns["type"].tolist(), columns["group"].tolist(), strict=True)
    told = [2 if kind == "SEND_RECV" else sizes.get(name, 0) for kind, name in pairs]
    return np.maximum(np.array(told, np.int64), columns["members"])


def bandwidth(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Message size, and bandwidths as nccl-tests define them."""
    size, own = columns["size"], columns["comm_bytes"]
    kinds = columns["type"].tolist()
    scaled = np.array([kind in {k.name for k in _SCALED} for kind in kinds], np.bool_)
    partly = np.array([kind in {k.name for k in _ONE_OF_N} for kind in kinds], np.bool_)
    all_reduce = np.array([kind == CollectiveType.ALL_REDUCE.name for kind in kinds], np.bool_)
    message = own * np.where(scaled, np.maximum(size, 1), 1)
    others = (size - 1) / np.maximum(size, 1)
    factor = np.where(all_reduce, 2 * others, np.where(partly, others, 1.0))
    took = np.ma.filled(columns["transfer_ns"], 0)
    rate = np.where((own > 0) & (took > 0), message / np.maximum(took, 1) * 1e9, np.nan)
    return {
        "message_bytes": known(message, np.asarray(own >= 0)),
        "algorithm_bytes_per_s": rate,
        "bus_bytes_per_s": np.where(size > 1, rate * factor, np.nan),
    }


def collective_table(traces: Mapping[int, Trace]) -> Table:
    """Collectives by type, group and message size; bandwidths are those of all transfers."""
    calls = call_table(traces)
    sizes = np.ma.filled(calls["message_bytes"], _UNKNOWN).astype(np.int64)
    kind, _ = codes(calls["type"].tolist())
    group, _ = codes(calls["group"].tolist())
    keys = Keys.of(kind, group, calls["size"].astype(np.int64), sizes)
    took = np.ma.filled(calls["transfer_ns"], 0).astype(np.int64)
    skew = np.ma.filled(calls["skew_ns"], 0).astype(np.int64)
    there = ~np.ma.getmaskarray(calls["transfer_ns"])
    total, count = keys.sum(took), keys.count()
    moved = keys.sum(np.where(there & (sizes > 0), sizes, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where((moved > 0) & (total > 0), moved / total * 1e9, np.nan)
        factor = (calls["bus_bytes_per_s"] / calls["algorithm_bytes_per_s"])[keys.first]
        share = keys.sum(calls["exposed_ns"]) / keys.sum(calls["member_ns"])
    per_call = keys.spread(took)
    first = calls.take(keys.first)
    skewed = keys.sum((~np.ma.getmaskarray(calls["skew_ns"])).astype(np.int64)) > 0
    columns = {
        "type": first["type"],
        "group": first["group"],
        "size": first["size"],
        "message_bytes": first["message_bytes"],
        "count": count,
        "transfer_ns": total,
        "mean_ns": total / count,
        "p95_ns": per_call["p95_ns"],
        "algorithm_bytes_per_s": rate,
        "bus_bytes_per_s": rate * factor,
        "exposed_share": share,
        "mean_skew_ns": np.where(skewed, keys.sum(skew) / count, np.nan),
        "max_skew_ns": known(keys.spread(skew)["max_ns"], skewed),
    }
    return Table("collectives", columns, _NOTE).by("transfer_ns")
